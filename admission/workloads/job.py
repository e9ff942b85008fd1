"""Job and CronJob (batch/v1): `spec.template`, as many at a time as `spec.parallelism`.

A CronJob has the Job in `spec.jobTemplate`; a change of it is for the next run.
"""

from __future__ import annotations

from admission.values import Documents, Json
from admission.workloads.fields import Amount, amount, at
from admission.workloads.kind import Pods
from admission.workloads.units import Template, template_of


def read(obj: Json, _documents: Documents) -> Pods:
    """Return the template of role `main`."""
    return Pods(templates=(job_template(at(obj, "", "spec"), "spec", role="main"),))


def read_cron(obj: Json, _documents: Documents) -> Pods:
    """Return the template of role `main` of the Job that is made at each time."""
    spec = at(obj, "", "spec", "jobTemplate", "spec")
    return Pods(templates=(job_template(spec, "spec.jobTemplate.spec", role="main"),))


def job_template(spec: Json, path: str, *, role: str) -> Template:
    """Return the template of a Job spec found at *path*."""
    replicas = parallelism(spec, path)
    return template_of(spec.get("template"), f"{path}.template", role=role, replicas=replicas)


def parallelism(spec: Json, path: str) -> Amount:
    """Return how many pods of a Job run at once: never more than there is work for.

    Source: kubernetes `pkg/controller/job/job_controller.go` v1.36.3, `manageJob`.
    """
    most = amount(spec.get("parallelism"), f"{path}.parallelism")
    if spec.get("completions") is None:
        return most
    work = amount(spec.get("completions"), f"{path}.completions")
    return min(most, work, key=lambda found: found.number) if work.is_known else most
