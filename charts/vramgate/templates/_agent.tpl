{{/* Names, labels and settings of the node agent. */}}

{{- define "vramgate.agentName" -}}
{{- printf "%s-agent" (include "vramgate.name" .) -}}
{{- end -}}

{{- define "vramgate.agentSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end -}}

{{- define "vramgate.agentLabels" -}}
{{ include "vramgate.agentSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The image: that of the webhook, as far as no other is told. */}}
{{- define "vramgate.agentImage" -}}
{{- $own := .Values.agent.image -}}
{{- $image := .Values.image -}}
{{- if $own.repository -}}
{{- $image = mergeOverwrite (deepCopy .Values.image) (dict "repository" $own.repository "tag" $own.tag "digest" $own.digest) -}}
{{- end -}}
{{- include "vramgate.image" (dict "Values" (dict "image" $image) "Chart" .Chart) -}}
{{- end -}}

{{/* What an agent reads at its start, and never again. */}}
{{- define "vramgate.agentSettings" -}}
{{- toYaml (pick (include "vramgate.settings" . | fromYaml) "agent" "logs") -}}
{{- end -}}
