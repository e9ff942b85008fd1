"""CronJob (batch/v1): the Job in `spec.jobTemplate`. A change is for the next run."""

from __future__ import annotations

from admission.values import Json
from admission.workloads.fields import mapping
from admission.workloads.job import job_templates
from admission.workloads.units import Template


def templates(obj: Json) -> tuple[Template, ...]:
    """Return the template of role `main`."""
    spec = mapping(obj.get("spec"), "spec")
    job = mapping(spec.get("jobTemplate"), "spec.jobTemplate")
    return job_templates(mapping(job.get("spec"), "spec.jobTemplate.spec"), "spec.jobTemplate.spec")


def has_started(_obj: Json) -> bool:
    """Return False: the template may change at any time."""
    return False
