"""Pod (v1): its own template."""

from __future__ import annotations

from admission.values import Documents, Json
from admission.workloads.fields import mapping
from admission.workloads.kind import Pods
from admission.workloads.units import Template


def read(obj: Json, _documents: Documents) -> Pods:
    """Return the pod as the one template of role `main`."""
    template = Template(
        role="main",
        path="",
        metadata=mapping(obj.get("metadata"), "metadata"),
        pod=mapping(obj.get("spec"), "spec"),
    )
    return Pods(templates=(template,))


def has_started(obj: Json) -> bool:
    """Return whether the pod has a node or a start time."""
    spec = mapping(obj.get("spec"), "spec")
    status = mapping(obj.get("status"), "status")
    return bool(spec.get("nodeName")) or status.get("startTime") is not None
