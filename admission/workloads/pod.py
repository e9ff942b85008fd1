"""Pod (v1): its own template."""

from __future__ import annotations

from admission.values import Json
from admission.workloads.fields import mapping
from admission.workloads.units import Template


def templates(obj: Json) -> tuple[Template, ...]:
    """Return the pod as the one template of role `main`."""
    return (
        Template(
            role="main",
            path="",
            replicas=1,
            metadata=mapping(obj.get("metadata"), "metadata"),
            pod=mapping(obj.get("spec"), "spec"),
        ),
    )


def has_started(obj: Json) -> bool:
    """Return whether the pod has a node or a start time."""
    spec = mapping(obj.get("spec"), "spec")
    status = mapping(obj.get("status"), "status")
    return bool(spec.get("nodeName")) or status.get("startTime") is not None
