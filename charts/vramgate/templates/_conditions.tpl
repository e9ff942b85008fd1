{{/* CEL that decides in the API server what need not be sent. */}}

{{/* Resources that ask for a GPU or a share of one (admission/workloads/resources.py, shares.py). */}}
{{- define "vramgate.gpuResources" -}}
^(nvidia\\.com/(gpu|mig-)|amd\\.com/gpu|gpu\\.intel\\.com/|volcano\\.sh/v?gpu|koordinator\\.sh/gpu|aliyun\\.com/gpu|tencent\\.com/vcuda|deviceclass\\.resource\\.kubernetes\\.io/.*(gpu|mig\\.))
{{- end -}}

{{/* Annotations of a pod that ask for a share of a GPU (admission/workloads/annotated.py). */}}
{{- define "vramgate.gpuAnnotations" -}}
['gpu-fraction', 'gpu-memory']
{{- end -}}

{{/* Whether the container c asks for a GPU. */}}
{{- define "vramgate.uses" -}}
['limits', 'requests'].exists(f, MAP(c.resources.[f]).exists(k,
k.matches('{{ include "vramgate.gpuResources" . }}')))
{{- end -}}

{{/* Whether the pod template t asks for a GPU. */}}
{{- define "vramgate.asks" -}}
(LIST(t.spec.resourceClaims).size() > 0 ||
MAP(t.metadata.annotations).exists(k, k in KEYS) ||
(LIST(t.spec.containers) + LIST(t.spec.initContainers)).exists(c, USES(c)))
{{- end -}}

{{/*
CEL with its short forms written out (see _kinds.tpl). LIST(a.b) and MAP(a.b) are what is at a field
path, or an empty list or map where that is absent, or null: `sidecars:` with nothing behind it.
*/}}
{{- define "vramgate.cel" -}}
{{- $text := . | replace "ASKS(t)" (include "vramgate.asks" .) | replace "USES(c)" (include "vramgate.uses" .) | replace "KEYS" (include "vramgate.gpuAnnotations" .) -}}
{{- range regexFindAll "(LIST|MAP)\\([\\w.\\[\\]]+\\)" $text -1 | uniq -}}
{{- $empty := ternary "dyn([])" "dyn({})" (hasPrefix "LIST" .) -}}
{{- $path := regexReplaceAll "^\\w+\\((.*)\\)$" . "${1}" | splitList "." -}}
{{- $value := first $path -}}
{{- range $index, $part := rest $path -}}
{{- $otherwise := ternary $empty "dyn({})" (eq (int (add $index 2)) (len $path)) -}}
{{- $step := ternary (replace "[" "[?" $part) (printf ".?%s" $part) (hasPrefix "[" $part) -}}
{{- $value = printf "optional.ofNonZeroValue(%s%s.orValue(%s))" $value $step $otherwise -}}
{{- end -}}
{{- $text = replace . (printf "%s.orValue(%s)" $value $empty) $text -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{/* Status, finalizers and other people's labels change often and say nothing about memory. */}}
{{- define "vramgate.changed" -}}
oldObject == null || {{ range .fields }}object.?{{ . }} != oldObject.?{{ . }} || {{ end -}}
['vramgate.dev/spec', 'vramgate.dev/spec-ref', 'vramgate.dev/retry-min-bytes'].exists(k,
object.metadata.?annotations[?k] != oldObject.metadata.?annotations[?k]) ||
['vramgate.dev/mode', 'vramgate.dev/steer'].exists(k,
object.metadata.?labels[?k] != oldObject.metadata.?labels[?k])
{{- end -}}

{{/*
Pods of a controller are judged at their owner: refusing them would make it try again without end,
and tell nobody. They are steered where the owner's template cannot be
(FIXED_OWNERS of admission/steer/permission.py).
*/}}
{{- define "vramgate.notControlled" -}}
!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))
{{- end -}}

{{/* Pods that are held are let go by the controller. */}}
{{- define "vramgate.checkGates" -}}
{{- if and (dig "steering" "gate" false .Values.config) (not .Values.controller.enabled) -}}
{{- fail "config.steering.gate holds pods until the controller lets them go: set controller.enabled too" -}}
{{- end -}}
{{- end -}}

{{- define "vramgate.notSteeredByOwner" -}}
object.metadata.?ownerReferences.orValue([]).all(o, !o.?controller.orValue(false) ||
(o.apiVersion.split('/')[0] + '/' + o.kind) in
['argoproj.io/Workflow', 'batch.volcano.sh/Job', 'elastic.pytorch.org/ElasticJob',
'kaito.sh/Workspace', 'ray.io/RayCluster', 'ray.io/RayJob',
'sagemaker.amazonaws.com/HyperPodPyTorchJob', 'trainer.kubeflow.org/TrainJob'])
{{- end -}}
