{{/*
Which objects are sent, one entry a group of kinds that keep their pod templates alike.

asksForGpu is CEL. In it `ASKS(t)` stands for "the pod template t asks for a GPU", `USES(c)` for "the
container c does", KEYS for the annotations that do, and LIST(…) and MAP(…) for what is at a field
path (_conditions.tpl writes them out). t and c are bound by the `exists` around them, since CEL has
no variables here. A kind without asksForGpu is sent whole: its GPUs are where no
condition can see them.
spec is what a change is looked for in; `observed` kinds are counted and never changed.
*/}}

{{- define "vramgate.kinds" -}}
# A pod's containers cannot be changed later in a way that matters: creation is enough.
- name: pods
  rules:
    - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
  asksForGpu: |-
    [object].exists(t, ASKS(t))

- name: jobs
  rules:
    - {apiGroups: [batch], apiVersions: [v1], resources: [jobs, cronjobs]}
  asksForGpu: |-
    [object.kind == 'CronJob' ? object.spec.jobTemplate.spec.template
    : object.spec.template].exists(t, ASKS(t))

# Roles, each with a template. The oldest MPIJob has one template, and counts its GPUs beside it.
- name: kubeflow
  rules:
    - apiGroups: [kubeflow.org]
      apiVersions: ["*"]
      resources: [pytorchjobs, tfjobs, jaxjobs, mxjobs, xgboostjobs, paddlejobs, mpijobs]
  asksForGpu: |-
    ['pytorchReplicaSpecs', 'tfReplicaSpecs', 'jaxReplicaSpecs', 'mxReplicaSpecs',
    'xgbReplicaSpecs', 'paddleReplicaSpecs', 'mpiReplicaSpecs'].exists(f,
    MAP(object.spec.[f]).exists(r, [MAP(object.spec.[f].[r].template)].exists(t, ASKS(t)))) ||
    has(object.spec.gpus) || has(object.spec.processingUnits) ||
    [MAP(object.spec.template)].exists(t, ASKS(t))

- name: jobsets
  rules:
    - {apiGroups: [jobset.x-k8s.io], apiVersions: ["*"], resources: [jobsets]}
  asksForGpu: |-
    LIST(object.spec.replicatedJobs).map(j, MAP(j.template.spec.template)).exists(t, ASKS(t))

- name: leaderworkersets
  rules:
    - {apiGroups: [leaderworkerset.x-k8s.io], apiVersions: ["*"], resources: [leaderworkersets]}
  asksForGpu: |-
    ['leaderTemplate', 'workerTemplate'].map(f,
    MAP(object.spec.leaderWorkerTemplate.[f])).exists(t, ASKS(t))

# The pods of a TrainJob are described in its runtime.
- name: trainjobs
  rules:
    - {apiGroups: [trainer.kubeflow.org], apiVersions: ["*"], resources: [trainjobs]}

- name: volcano
  rules:
    - {apiGroups: [batch.volcano.sh], apiVersions: ["*"], resources: [jobs]}
  asksForGpu: |-
    LIST(object.spec.tasks).map(j, MAP(j.template)).exists(t, ASKS(t))

- name: rayjobs
  rules:
    - {apiGroups: [ray.io], apiVersions: ["*"], resources: [rayjobs]}
  asksForGpu: |-
    [MAP(object.spec.rayClusterSpec)].exists(s,
    ([MAP(s.headGroupSpec)] + LIST(s.workerGroupSpecs)).map(g,
    MAP(g.template)).exists(t, ASKS(t)))

# A patch in text, another template or one written within a step: GPUs may be in any of them.
- name: workflows
  rules:
    - {apiGroups: [argoproj.io], apiVersions: ["*"], resources: [workflows, cronworkflows]}
  asksForGpu: |-
    [object.kind == 'CronWorkflow' ? object.spec.workflowSpec : object.spec].exists(w,
    has(w.podSpecPatch) || has(w.workflowTemplateRef) || has(w.templateDefaults) ||
    MAP(w.podMetadata.annotations).exists(k, k in KEYS) ||
    LIST(w.templates).exists(e, has(e.podSpecPatch) ||
    (LIST(e.steps).map(g, type(g) == list ? g : [g]) + [LIST(e.dag.tasks)])
    .exists(g, g.exists(c, has(c.templateRef) || has(c.inline))) ||
    LIST(e.resourceClaims).size() > 0 ||
    MAP(e.metadata.annotations).exists(k, k in KEYS) ||
    ([MAP(e.container), MAP(e.script)] + LIST(e.containerSet.containers) +
    LIST(e.sidecars) + LIST(e.initContainers)).exists(c, USES(c))))

# A Workspace counts no GPUs. One that tunes has `tuning`; the others serve.
- name: workspaces
  rules:
    - {apiGroups: [kaito.sh], apiVersions: ["*"], resources: [workspaces]}
  applies: has(object.tuning)
  fields: [resource, tuning]

- name: hyperpod
  rules:
    - {apiGroups: [sagemaker.amazonaws.com], apiVersions: ["*"], resources: [hyperpodpytorchjobs]}
  asksForGpu: |-
    LIST(object.spec.replicaSpecs).map(r, MAP(r.template)).exists(t, ASKS(t))

- name: elasticjobs
  rules:
    - {apiGroups: [elastic.pytorch.org], apiVersions: ["*"], resources: [elasticjobs]}
  asksForGpu: |-
    MAP(object.spec.replicaSpecs).exists(r,
    [MAP(object.spec.replicaSpecs.[r].template)].exists(t, ASKS(t)))

- name: served
  observed: true
  rules:
    - {apiGroups: [apps], apiVersions: [v1], resources: [deployments, statefulsets]}
    - {apiGroups: [kubeflow.org], apiVersions: ["*"], resources: [notebooks]}
  asksForGpu: |-
    [MAP(object.spec.template)].exists(t, ASKS(t))

- name: rayclusters
  observed: true
  rules:
    - {apiGroups: [ray.io], apiVersions: ["*"], resources: [rayclusters]}
  asksForGpu: |-
    ([MAP(object.spec.headGroupSpec)] + LIST(object.spec.workerGroupSpecs)).map(g,
    MAP(g.template)).exists(t, ASKS(t))
{{- end -}}
