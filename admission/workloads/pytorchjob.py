"""PyTorchJob (kubeflow.org/v1): one template a role in `spec.pytorchReplicaSpecs`."""

from __future__ import annotations

from admission.errors import RequestError
from admission.values import Json
from admission.workloads.fields import count, mapping, sequence
from admission.workloads.units import MAX_TEMPLATES, Template, template_of

_STARTED = ("Running", "Restarting", "Succeeded", "Failed")


def templates(obj: Json) -> tuple[Template, ...]:
    """Return the templates of the roles, Master first as it is usually written."""
    return replica_templates(obj, "pytorchReplicaSpecs")


def has_started(obj: Json) -> bool:
    """Return whether the operator has set a start time, or a condition says it ran."""
    status = mapping(obj.get("status"), "status")
    if status.get("startTime") is not None:
        return True
    for index, item in enumerate(sequence(status.get("conditions"), "status.conditions")):
        condition = mapping(item, f"status.conditions[{index}]")
        if condition.get("type") in _STARTED and condition.get("status") == "True":
            return True
    return False


def replica_templates(obj: Json, key: str) -> tuple[Template, ...]:
    """Return the templates of a kubeflow.org kind whose roles are under `spec.<key>`.

    Raises:
        RequestError: if there are more roles than any job has.
    """
    spec = mapping(obj.get("spec"), "spec")
    roles = mapping(spec.get(key), f"spec.{key}")
    if len(roles) > MAX_TEMPLATES:
        raise RequestError(f"spec.{key}: {len(roles)} roles; at most {MAX_TEMPLATES} are read")
    found = []
    for role, body in roles.items():
        path = f"spec.{key}.{role}"
        fields = mapping(body, path)
        replicas = count(fields.get("replicas"), f"{path}.replicas", default=1)
        found.append(
            template_of(fields.get("template"), f"{path}.template", role=role, replicas=replicas)
        )
    return tuple(found)
