"""TrainingRuntime and ClusterTrainingRuntime (trainer.kubeflow.org): a JobSet others start.

`spec.mlPolicy` says how many nodes, `spec.template.spec` is a JobSet's spec. Judged by `explain`
only: a TrainJob names it.
Source: kubeflow/trainer 8c0f5059, `pkg/runtime/core/trainingruntime.go`,
`pkg/runtime/framework/plugins/{torch,mpi,jax,xgboost}`; `mlPolicy.torch.numProcPerNode` is of
v2.1.0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from admission.values import Documents, Json
from admission.workloads.fields import Amount, amount, at, entries, is_unrendered, mapping, text
from admission.workloads.jobset import replicated_jobs
from admission.workloads.kind import Pods
from admission.workloads.mpijob import SLOTS
from admission.workloads.replicas import numbers
from admission.workloads.units import Template

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
TRAINER = "trainer"
NODE = "node"
"""The container, and the job, that trains."""
LAUNCHER = "launcher"
_LABEL = "trainer.kubeflow.org/framework"
_FRAMEWORKS = {
    "torch": "pytorch",
    "torchtune": "pytorch",
    "deepspeed": "pytorch",
    "jax": "jax",
    "tensorflow": "tensorflow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How many nodes and processes are asked for; None: as the runtime says."""

    nodes: Amount | None = None
    processes: object = None
    """A number, or torchrun's `auto`, `gpu` or `cpu`."""


def read(obj: Json, _documents: Documents) -> Pods:
    """Return the templates of the JobSet, as a TrainJob that changes nothing would start it."""
    return pods_of(obj, "")


def pods_of(runtime: Json, prefix: str, scale: Scale | None = None) -> Pods:
    """Return what *runtime* starts at *scale*; *prefix* goes before its field paths."""
    spec = at(runtime, prefix, "spec")
    path = f"{prefix}spec"
    policy = at(spec, path, "mlPolicy")
    jobs = at(spec, path, "template", "spec")
    templates = replicated_jobs(jobs, f"{path}.template.spec")
    steps = _steps(jobs, f"{path}.template.spec")
    asked = _with_defaults(scale or Scale(), policy, f"{path}.mlPolicy")
    sized = tuple(
        replace(template, replicas=_pods(template, step, asked, policy))
        for template, step in zip(templates, steps, strict=True)
    )
    framework, source = _framework(runtime, policy, prefix)
    return Pods(
        templates=tuple(
            replace(template, injected=_variables(template, step, asked, policy, path))
            for template, step in zip(sized, steps, strict=True)
        ),
        launcher=LAUNCHER if "mpi" in policy else "",
        framework=framework,
        framework_source=source,
    )


def _steps(jobs: Json, path: str) -> tuple[str, ...]:
    """Return each job's part in a TrainJob: its label."""
    found = []
    for job, where in entries(jobs.get("replicatedJobs"), f"{path}.replicatedJobs"):
        labels = at(job, where, "template", "metadata", "labels")
        found.append(text(labels.get(STEP), f"{where}.template.metadata.labels[{STEP}]"))
    return tuple(found)


def _with_defaults(scale: Scale, policy: Json, path: str) -> Scale:
    """Return *scale* with what the runtime says where nothing else is asked for."""
    nodes = scale.nodes
    if nodes is None and policy.get("numNodes") is not None:
        nodes = amount(policy.get("numNodes"), f"{path}.numNodes")
    processes = scale.processes
    for plugin in ("torch", "mpi"):
        if processes is None:
            processes = at(policy, path, plugin).get("numProcPerNode")
    return Scale(nodes=nodes, processes=processes)


def _pods(template: Template, step: str, scale: Scale, policy: Json) -> Amount:
    """Return how many pods a job has: the nodes, of which MPI's launcher may be one."""
    nodes = scale.nodes or Amount(number=1)
    if "mpi" in policy:
        if template.role != NODE or scale.nodes is None:
            return template.replicas
        as_node = mapping(policy.get("mpi"), "mpi").get("runLauncherAsNode") is True
        number = max(nodes.number - 1, 1) if as_node else nodes.number
        return Amount(number=number, is_known=nodes.is_known)
    return nodes if step == TRAINER else template.replicas


def _variables(template: Template, step: str, scale: Scale, policy: Json, path: str) -> Json:
    """Return what the policy's plugin sets; ranks and addresses are left out."""
    nodes = template.replicas
    if "torch" in policy and step == TRAINER:
        word = "auto" if scale.processes is None else str(scale.processes)
        known = {} if is_unrendered(scale.processes) else {"PET_NPROC_PER_NODE": word}
        return {**numbers(PET_NNODES=nodes), **known}
    if "jax" in policy and step == TRAINER:
        return numbers(JAX_NUM_PROCESSES=nodes)
    if "xgboost" in policy and step == TRAINER:
        return numbers(DMLC_NUM_WORKER=nodes)
    if "mpi" in policy and template.role == LAUNCHER and scale.processes not in (None, 1):
        slots = amount(scale.processes, f"{path}.mlPolicy.mpi.numProcPerNode")
        return numbers(**{SLOTS: slots})
    return {}


def _framework(runtime: Json, policy: Json, prefix: str) -> tuple[str, str]:
    """Return the framework by the runtime's label, or else by its plugin."""
    labels = at(runtime, prefix, "metadata", "labels")
    label = labels.get(_LABEL)
    if isinstance(label, str) and label in _FRAMEWORKS:
        return _FRAMEWORKS[label], f"{prefix}metadata.labels[{_LABEL}]"
    for plugin in ("torch", "jax"):
        if plugin in policy:
            return _FRAMEWORKS[plugin], f"{prefix}spec.mlPolicy.{plugin}"
    return "", ""
