{{/* Names and labels. */}}

{{- define "vramgate.name" -}}
{{- if .Values.nameOverride -}}
{{- .Values.nameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "vramgate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: webhook
{{- end -}}

{{- define "vramgate.labels" -}}
{{ include "vramgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "vramgate.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "vramgate.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "vramgate.name" .) -}}
{{- end -}}

{{- define "vramgate.secret" -}}
{{- .Values.certificates.secretName | default (printf "%s-certificates" (include "vramgate.name" .)) -}}
{{- end -}}

{{/* Names of the webhook configurations: of both kinds, open and closed. */}}
{{- define "vramgate.configurations" -}}
{{- $names := list (include "vramgate.name" .) -}}
{{- if .Values.webhooks.failClosed -}}
{{- $names = append $names (printf "%s-closed" (include "vramgate.name" .)) -}}
{{- end -}}
{{- toYaml $names -}}
{{- end -}}
