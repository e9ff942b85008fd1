{{/* The settings file: the values' `config`, and what the chart decides. */}}

{{- define "vramgate.settings" -}}
{{- $name := include "vramgate.name" . -}}
{{- $certificates := dict "mode" "files" -}}
{{- if eq .Values.certificates.mode "builtin" -}}
{{- $certificates = dict
    "mode" "builtin"
    "secret" (dict "namespace" .Release.Namespace "name" (include "vramgate.secret" .))
    "service" (dict "namespace" .Release.Namespace "name" $name)
    "webhooks" (include "vramgate.configurations" . | fromYamlArray) -}}
{{- end -}}
{{- $own := dict
    "server" (dict "port" .Values.port "metricsPort" .Values.metricsPort)
    "certificates" $certificates -}}
{{- toYaml (mustMergeOverwrite (deepCopy .Values.config) $own) -}}
{{- end -}}
