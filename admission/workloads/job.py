"""Job (batch/v1): `spec.template`, as many at a time as `spec.parallelism`."""

from __future__ import annotations

from admission.values import Json
from admission.workloads.fields import count, mapping
from admission.workloads.units import Template, template_of


def templates(obj: Json) -> tuple[Template, ...]:
    """Return the template of role `main`."""
    return job_templates(mapping(obj.get("spec"), "spec"), "spec")


def has_started(obj: Json) -> bool:
    """Return whether the Job controller has set a start time, or pods are active."""
    status = mapping(obj.get("status"), "status")
    return status.get("startTime") is not None or bool(status.get("active"))


def job_templates(spec: Json, path: str) -> tuple[Template, ...]:
    """Return the template of a Job spec found at *path*."""
    replicas = count(spec.get("parallelism"), f"{path}.parallelism", default=1)
    return (template_of(spec.get("template"), f"{path}.template", role="main", replicas=replicas),)
