"""Whether an object has started already: from then on nothing about it is refused.

status -> yes or no
"""

from __future__ import annotations

from admission.values import Json
from admission.workloads.fields import entries, mapping

_RAN = ("Running", "Restarting", "Succeeded", "Failed", "Complete", "Completed", "JobStarted")
_COUNTS = ("active", "running", "ready", "succeeded", "failed", "readyReplicas")


def never(_obj: Json) -> bool:
    """Return False: what it describes may change at any time, for the next run."""
    return False


def by_status(obj: Json) -> bool:
    """Return whether *obj* has a start time, pods, or a condition that says it ran."""
    status = mapping(obj.get("status"), "status")
    if status.get("startTime") is not None or status.get("startedAt") is not None:
        return True
    return any(status.get(key) for key in _COUNTS) or _has_run(status)


def by_jobs(key: str, obj: Json) -> bool:
    """Return whether one of the jobs that `status.<key>` lists has pods, or a condition ran."""
    status = mapping(obj.get("status"), "status")
    jobs = entries(status.get(key), f"status.{key}")
    return any(job.get(count) for job, _ in jobs for count in _COUNTS) or _has_run(status)


def _has_run(status: Json) -> bool:
    return any(
        condition.get("type") in _RAN and condition.get("status") == "True"
        for condition, _ in entries(status.get("conditions"), "status.conditions")
    )
