{{/*
The webhooks of one configuration: {root, mutating, closed} -> a list, one webhook a group of kinds.
*/}}
{{- define "vramgate.webhooks" -}}
{{- $root := .root -}}
{{- $values := .root.Values -}}
{{- $kinds := include "vramgate.kinds" . | fromYamlArray -}}
{{- with $values.webhooks.extraKinds -}}
{{- $rules := list -}}
{{- range . -}}
{{- $rules = append $rules (dict "apiGroups" (list .apiGroup) "apiVersions" (list "*") "resources" (list .resource)) -}}
{{- end -}}
{{- $kinds = append $kinds (dict "name" "extra" "rules" $rules) -}}
{{- end -}}
{{- range $kinds }}
{{- if not (and .observed (or $.mutating $.closed (not $values.webhooks.observe))) }}
- {{ include "vramgate.webhook" (dict "root" $root "kind" . "mutating" $.mutating "closed" $.closed) | indent 2 | trim }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "vramgate.webhook" -}}
{{- $values := .root.Values -}}
name: {{ .kind.name }}.vramgate.dev
clientConfig:
  service:
    name: {{ include "vramgate.name" .root }}
    namespace: {{ .root.Release.Namespace }}
    path: {{ ternary "/mutate" "/validate" .mutating }}
    port: {{ $values.service.port }}
  {{- with $values.certificates.caBundle }}
  caBundle: {{ . }}
  {{- end }}
admissionReviewVersions: [v1]
# A dry run gets the same answer, because an answer leaves no trace.
sideEffects: None
failurePolicy: {{ ternary "Fail" "Ignore" .closed }}
timeoutSeconds: {{ $values.webhooks.timeoutSeconds }}
matchPolicy: Equivalent
{{- if .mutating }}
reinvocationPolicy: IfNeeded
{{- end }}
namespaceSelector:
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: {{ append $values.webhooks.excludedNamespaces .root.Release.Namespace | uniq | toJson }}
    - {key: vramgate.dev/webhook, operator: NotIn, values: [ignore]}
    {{- if .closed }}
    - {key: vramgate.dev/fail, operator: In, values: [closed]}
    {{- else if $values.webhooks.failClosed }}
    - {key: vramgate.dev/fail, operator: NotIn, values: [closed]}
    {{- end }}
    {{- with $values.webhooks.namespaceExpressions }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
objectSelector:
  matchExpressions:
    - {key: vramgate.dev/webhook, operator: NotIn, values: [ignore]}
rules:
  {{- range .kind.rules }}
  - apiGroups: {{ toJson .apiGroups }}
    apiVersions: {{ toJson .apiVersions }}
    # The main resources only: a status is no change of what a job needs.
    resources: {{ toJson .resources }}
    operations: {{ .operations | default (list "CREATE" "UPDATE") | toJson }}
    scope: Namespaced
  {{- end }}
matchConditions:
  - name: not-being-deleted
    expression: "!has(object.metadata.deletionTimestamp)"
  {{- if eq .kind.name "pods" }}
  {{- include "vramgate.checkGates" .root }}
  {{- if and .mutating (not .root.Values.controller.enabled) }}
  # With a controller pods of every owner are sent: one may be held, or its like may have died.
  - name: not-steered-by-its-owner
    expression: >-
      {{- include "vramgate.notSteeredByOwner" . | nindent 6 }}
  {{- else if not .mutating }}
  - name: not-controlled
    expression: {{ include "vramgate.notControlled" . | quote }}
  {{- end }}
  {{- end }}
  {{- with .kind.applies }}
  - name: applies
    expression: {{ . | quote }}
  {{- end }}
  {{- with .kind.asksForGpu }}
  - name: asks-for-gpu
    expression: >-
      {{- include "vramgate.cel" . | nindent 6 }}
  {{- end }}
  {{- if ne .kind.name "pods" }}
  - name: something-we-read-changed
    expression: >-
      {{- include "vramgate.changed" (dict "fields" (.kind.fields | default (list "spec"))) | nindent 6 }}
  {{- end }}
{{- end -}}
