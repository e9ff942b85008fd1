"""TrainJob (trainer.kubeflow.org/v1alpha1): its pods are described by a runtime it names.

`spec.trainer` changes the container `node` of the runtime's job that trains; patches change any.
Source: kubeflow/trainer 8c0f5059, `pkg/runtime/framework/plugins/jobset/builder.go` and
`pkg/runtime/core/trainingruntime.go`; `podTemplateOverrides` are v2.1.0's and `podSpecOverrides`
v2.0.0's. `resourcesPerNode` is merged, as since v2.2; earlier releases replaced all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from admission.values import Documents, Finding, Json
from admission.workloads.fields import amount, at, entries, mapping, sequence, text
from admission.workloads.kind import Pods
from admission.workloads.outside import absence, body_of
from admission.workloads.patches import patched
from admission.workloads.started import by_jobs
from admission.workloads.torchtune import with_recipe
from admission.workloads.trainingruntime import NODE, STEP, TRAINER, Scale, pods_of
from admission.workloads.units import Template

MODEL_STEP = "model-initializer"
MODEL_FOLDER = "/workspace/model"
"""Where the initializer puts the model: `pkg/constants/constants.go`."""
_HUB = "hf://"
_PATCHES = "spec.runtimePatches"


def read(obj: Json, documents: Documents) -> Pods:
    """Return the runtime's templates as this job changes them; without it, what the job says."""
    spec = at(obj, "", "spec")
    trainer = at(spec, "spec", "trainer")
    reference = _reference(spec)
    runtime = body_of(reference, documents)
    if runtime is None:
        problem = absence(reference, documents, path="spec.runtimeRef.name")
        return _without_runtime(trainer, reference, documents, problem)
    prefix = f"{reference}: "
    scale = Scale(
        nodes=amount(trainer.get("numNodes"), "spec.trainer.numNodes")
        if trainer.get("numNodes") is not None
        else None,
        processes=trainer.get("numProcPerNode"),
    )
    changed = _changed(runtime, prefix, spec, trainer)
    changed = with_recipe(changed, runtime, prefix, spec, scale)
    pods = pods_of(changed, prefix, scale)
    models = _models(pods, spec)
    return replace(
        pods,
        templates=tuple(
            replace(_placed(template, trainer, pods), models=models, steering=_PATCHES)
            for template in pods.templates
        ),
    )


def has_started(obj: Json) -> bool:
    """Return whether one of its jobs has had pods."""
    return by_jobs("jobsStatus", obj)


def _reference(spec: Json) -> str:
    """Return which runtime is named: a cluster's unless it says otherwise."""
    named = at(spec, "spec", "runtimeRef")
    kind = text(named.get("kind"), "spec.runtimeRef.kind") or "ClusterTrainingRuntime"
    return f"{kind.lower()}/{text(named.get('name'), 'spec.runtimeRef.name')}"


def _without_runtime(trainer: Json, reference: str, documents: Documents, problem: Finding) -> Pods:
    keys = ("image", "command", "args", "env")
    container = {
        "name": NODE,
        **{key: trainer[key] for key in keys if trainer.get(key) is not None},
        "resources": trainer.get("resourcesPerNode"),
    }
    template = Template(
        role=NODE,
        path="spec.trainer",
        replicas=amount(trainer.get("numNodes"), "spec.trainer.numNodes"),
        metadata={},
        pod={"containers": [container]},
        places={"containers[0]": "spec.trainer"},
        standing="spec.trainer",
        steering=_PATCHES,
    )
    return Pods(
        templates=(template,),
        wanted=() if reference in documents else (reference,),
        problems=(problem,),
    )


def _changed(runtime: Json, prefix: str, spec: Json, trainer: Json) -> Json:
    """Return *runtime* with the job's patches, and then its trainer, put over it."""
    outer = at(runtime, prefix, "spec")
    template = at(outer, f"{prefix}spec", "template")
    jobs = mapping(template.get("spec"), f"{prefix}spec.template.spec")
    for patch, where in entries(spec.get("runtimePatches"), _PATCHES):
        change = at(patch, where, "trainingRuntimeSpec", "template", "spec")
        jobs = patched(jobs, change)
    policy = at(outer, f"{prefix}spec", "mlPolicy")
    as_node = at(policy, f"{prefix}spec.mlPolicy", "mpi").get("runLauncherAsNode") is True
    found = [
        _changed_job(job, where, spec, trainer, as_node=as_node)
        for job, where in entries(
            jobs.get("replicatedJobs"), f"{prefix}spec.template.spec.replicatedJobs"
        )
    ]
    changed = {**template, "spec": {**jobs, "replicatedJobs": found}}
    return {**runtime, "spec": {**outer, "template": changed}}


def _changed_job(job: Json, where: str, spec: Json, trainer: Json, *, as_node: bool) -> Json:
    outer = at(job, where, "template")
    inner = at(outer, f"{where}.template", "spec")
    pod = at(inner, f"{where}.template.spec", "template")
    pod = _overridden(pod, job.get("name"), spec)
    labels = at(outer, f"{where}.template", "metadata", "labels")
    trains = labels.get(STEP) == TRAINER
    body = at(pod, f"{where}.template.spec.template", "spec")
    containers = [
        _trained(container, trainer, is_told=trains)
        if container.get("name") == NODE and (trains or (as_node and job.get("name") == NODE))
        else container
        for container, _ in entries(
            body.get("containers"), f"{where}.template.spec.template.spec.containers"
        )
    ]
    pod = {**pod, "spec": {**body, "containers": containers}}
    # Several replicas of one replicated job are not supported by the operator: it sets one.
    fixed = {"replicas": 1} if trains else {}
    return {**job, **fixed, "template": {**outer, "spec": {**inner, "template": pod}}}


def _overridden(pod: Json, job: object, spec: Json) -> Json:
    """Return a pod template with what older releases put over it, by the name of its *job*."""
    for key, is_spec in (("podSpecOverrides", True), ("podTemplateOverrides", False)):
        for override, where in entries(spec.get(key), f"spec.{key}"):
            targets = entries(override.get("targetJobs"), f"{where}.targetJobs")
            if not any(target.get("name") == job for target, _ in targets):
                continue
            change = {name: value for name, value in override.items() if name != "targetJobs"}
            pod = patched(pod, {"spec": change} if is_spec else change)
    return pod


def _trained(container: Json, trainer: Json, *, is_told: bool) -> Json:
    """Return the container that trains with the job's own words; *is_told*: what to run, too."""
    change: dict[str, Any] = {}
    if trainer.get("resourcesPerNode") is not None:
        change["resources"] = mapping(
            trainer.get("resourcesPerNode"), "spec.trainer.resourcesPerNode"
        )
    if trainer.get("env") is not None:
        change["env"] = list(sequence(trainer.get("env"), "spec.trainer.env"))
    if is_told:
        for key in ("image", "command", "args"):
            if trainer.get(key) is not None:
                change[key] = trainer[key]
    return patched(container, change)


def _placed(template: Template, trainer: Json, pods: Pods) -> Template:
    """Return *template* whose container `node` is placed where the job says what it runs."""
    told = any(trainer.get(key) is not None for key in ("command", "args"))
    if not told or template.role != (pods.launcher or NODE):
        return template
    path = f"{template.pod_path}.containers"
    places = {
        f"containers[{index}]": "spec.trainer"
        for index, (container, _) in enumerate(entries(template.pod.get("containers"), path))
        if container.get("name") == NODE
    }
    return replace(template, places=places)


def _models(pods: Pods, spec: Json) -> Mapping[str, str]:
    """Return the Hub's model that is fetched before training: folder -> id."""
    initializer = at(spec, "spec", "initializer", "model")
    uri = text(initializer.get("storageUri"), "spec.initializer.model.storageUri")
    for template in pods.templates:
        if template.role != MODEL_STEP or uri:
            continue
        path = f"{template.pod_path}.containers"
        for container, where in entries(template.pod.get("containers"), path):
            for variable, _ in entries(container.get("env"), f"{where}.env"):
                if variable.get("name") == "STORAGE_URI":
                    uri = text(variable.get("value"), f"{where}.env")
    return {MODEL_FOLDER: uri.removeprefix(_HUB)} if uri.startswith(_HUB) else {}
