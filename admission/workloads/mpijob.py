"""MPIJob (kubeflow.org v1alpha1, v1alpha2, v1, v2beta1): the command is on the Launcher.

Roles are under `spec.mpiReplicaSpecs`; v1alpha1 has one `spec.template` for both, whose command
the launcher runs and whose GPUs the workers get.
Source: kubeflow/mpi-operator v0.8.0 (`pkg/controller/mpi_job_controller.go`, `default.go`) and
v0.2.3 (`pkg/controllers/v1alpha1/mpi_job_controller.go`, `allocateProcessingUnits`).
"""

from __future__ import annotations

from admission.values import Documents, Json
from admission.workloads.fields import NONE, ONE, Amount, amount, at, entries, mapping, text
from admission.workloads.kind import Pods
from admission.workloads.replicas import Roles, numbers, replica_templates
from admission.workloads.resources import GPU, gpu_request
from admission.workloads.units import Template, template_of

LAUNCHER = "Launcher"
WORKER = "Worker"
SLOTS = "OMPI_MCA_orte_set_default_slots"
"""Open MPI's slots a host. Older operators write them into the host file instead."""


def read(obj: Json, _documents: Documents) -> Pods:
    """Return the templates of Launcher and Worker."""
    spec = at(obj, "", "spec")
    if spec.get("mpiReplicaSpecs") is None and spec.get("template") is not None:
        return Pods(templates=_flat(spec))
    templates = replica_templates(obj, "mpiReplicaSpecs", _variables)
    launcher = next((role.role for role in templates if role.role.lower() == "launcher"), LAUNCHER)
    return Pods(templates=templates, launcher=launcher)


def _variables(spec: Json, _role: str, _roles: Roles) -> Json:
    return numbers(**{SLOTS: amount(spec.get("slotsPerWorker"), "spec.slotsPerWorker")})


def _flat(spec: Json) -> tuple[Template, ...]:
    """Return the workers of the form without roles: the launcher has no GPU, and their command."""
    template = template_of(spec.get("template"), "spec.template", role=WORKER)
    workers, units = _allocated(spec, template)
    slots = amount(spec.get("slotsPerWorker"), "spec.slotsPerWorker", default=units.number or 1)
    pod = dict(template.pod)
    resource = text(spec.get("processingResourceType"), "spec.processingResourceType")
    if units.number and resource in ("", GPU, "gpu") and spec.get("replicas") is None:
        containers = list(entries(pod.get("containers"), "spec.template.spec.containers"))
        pod["containers"] = [
            _with_gpus(container, units) if index == 0 else container
            for index, (container, _) in enumerate(containers)
        ]
    return (
        Template(
            role=WORKER,
            path="spec.template",
            replicas=workers,
            metadata=template.metadata,
            pod=pod,
            injected=numbers(**{SLOTS: slots}),
        ),
    )


def _allocated(spec: Json, template: Template) -> tuple[Amount, Amount]:
    """Return the workers and the GPUs of each, from `gpus`, `processingUnits` or `replicas`."""
    for total_key, each_key in (
        ("gpus", "gpusPerNode"),
        ("processingUnits", "processingUnitsPerNode"),
    ):
        if spec.get(total_key) is None:
            continue
        total = amount(spec.get(total_key), f"spec.{total_key}")
        each = amount(spec.get(each_key), f"spec.{each_key}")
        if not each.number or total.number < each.number:
            return ONE, total
        known = total.is_known and each.is_known
        return Amount(number=total.number // each.number, is_known=known), each
    replicas = amount(spec.get("replicas"), "spec.replicas", default=0)
    for container, where in entries(
        template.pod.get("containers"), "spec.template.spec.containers"
    ):
        request = gpu_request(container, where, claims={})
        return replicas, Amount(number=request.count) if request else NONE
    return replicas, NONE


def _with_gpus(container: Json, units: Amount) -> Json:
    """Return *container* with the GPUs that the operator gives each worker."""
    resources = mapping(container.get("resources"), "spec.template.spec.containers[0].resources")
    limits = mapping(resources.get("limits"), "spec.template.spec.containers[0].resources.limits")
    number: object = units.number if units.is_known else "$GPUS"
    return {**container, "resources": {**resources, "limits": {**limits, GPU: number}}}
