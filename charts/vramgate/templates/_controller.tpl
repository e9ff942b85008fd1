{{/* Names, labels and settings of the controller. */}}

{{- define "vramgate.controllerName" -}}
{{- printf "%s-controller" (include "vramgate.name" .) -}}
{{- end -}}

{{- define "vramgate.controllerSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "vramgate.controllerLabels" -}}
{{ include "vramgate.controllerSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* What a controller reads at its start, and never again. */}}
{{- define "vramgate.controllerSettings" -}}
{{- toYaml (omit (include "vramgate.settings" . | fromYaml) "server" "certificates" "agent" "metrics") -}}
{{- end -}}
