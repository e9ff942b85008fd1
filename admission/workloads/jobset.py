"""JobSet (jobset.x-k8s.io): `spec.replicatedJobs`, each a number of equal Jobs.

Only nodeSelector and tolerations of a suspended one may be changed, see `jobset_webhook.go`.
Source: kubernetes-sigs/jobset v0.12.0, `api/jobset/v1alpha2/jobset_types.go`.
"""

from __future__ import annotations

from admission.values import Documents, Json
from admission.workloads.fields import amount, at, entries, text
from admission.workloads.job import parallelism
from admission.workloads.kind import Pods
from admission.workloads.started import by_jobs
from admission.workloads.units import Template, limited, template_of


def read(obj: Json, _documents: Documents) -> Pods:
    """Return a template for each replicated job, named like it."""
    return Pods(templates=replicated_jobs(at(obj, "", "spec"), "spec"))


def replicated_jobs(spec: Json, path: str) -> tuple[Template, ...]:
    """Return the templates of a JobSet spec found at *path*.

    Raises:
        RequestError: if it is malformed, or has more roles than any job has.
    """
    where = f"{path}.replicatedJobs"
    found: list[Template] = []
    for job, place in entries(spec.get("replicatedJobs"), where):
        limited(found, where, what="replicated jobs")
        inner = at(job, place, "template", "spec")
        jobs = amount(job.get("replicas"), f"{place}.replicas")
        found.append(
            template_of(
                inner.get("template"),
                f"{place}.template.spec.template",
                role=text(job.get("name"), f"{place}.name"),
                replicas=jobs.times(parallelism(inner, f"{place}.template.spec")),
            )
        )
    return tuple(found)


def has_started(obj: Json) -> bool:
    """Return whether one of its jobs has had pods."""
    return by_jobs("replicatedJobsStatus", obj)
