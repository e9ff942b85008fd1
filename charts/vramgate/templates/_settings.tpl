{{/* The mode of the install. `off` without quotes is false by the time it is here. */}}
{{- define "vramgate.mode" -}}
{{- $mode := dig "policy" "mode" "warn" .Values.config -}}
{{- ternary "off" $mode (kindIs "bool" $mode) -}}
{{- end -}}

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
{{- if .Values.agent.enabled -}}
{{- $own = set $own "agent" (dict "port" .Values.agent.port) -}}
{{- end -}}
{{- if .Values.controller.enabled -}}
{{- $own = set $own "controller" (dict "port" .Values.controller.port) -}}
{{- end -}}
{{- toYaml (mustMergeOverwrite (deepCopy .Values.config) $own) -}}
{{- end -}}

{{/* What of it a running process does not take up (`at_work` of admission/settings_file.py). */}}
{{- define "vramgate.startSettings" -}}
{{- $settings := include "vramgate.settings" . | fromYaml -}}
{{- $parts := pick $settings "server" "certificates" "workers" -}}
{{- toYaml (set $parts "nodes" (pick ($settings.nodes | default dict) "file")) -}}
{{- end -}}
