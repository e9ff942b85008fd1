"""Which kinds can be moved as a whole: suspended, changed, resumed; and whether a retry is left.

    object -> how it is suspended, whether all its pods are gone, why no retry is left

Sources: kubernetes v1.36.3 `pkg/controller/job/job_controller.go` (`manageJob` deletes the pods of
a suspended Job and takes their finalizer first, so that they count as no failures, which a deleted
pod otherwise does: `isPodFailed`; `exceedsBackoffLimit`) and `pkg/registry/batch/job/strategy.go`
(the template of a suspended Job may change once it has the condition Suspended and no active pod,
by the gate `MutableSchedulingDirectivesForSuspendedJobs`, on from 1.36; before, once
status.startTime is away); jobset v0.12.0 `pkg/controllers/jobset_controller.go` (`resumeJob`) and
`failure_policy.go`; training-operator v1.9.3 `pkg/controller.v1/common/job.go`.
Not modelled: a podFailurePolicy, backoffLimitPerIndex, a JobSet's rules for single Jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from admission.controller.pods import PodView
from admission.controller.refs import Ref
from admission.steer.permission import REMADE
from admission.steer.places import Place, found, mapping_at
from admission.values import Json
from admission.workloads.fields import parts

JOB, JOBSET, CRONJOB = ("batch", "Job"), ("jobset.x-k8s.io", "JobSet"), ("batch", "CronJob")
DEFAULT_BACKOFF = 6
_ENDS = ("Complete", "Failed", "Completed", "Succeeded", "FailureTarget", "SuccessCriteriaMet")
_AGAIN = ("OnFailure", "Always")
_DEFAULT_POLICY = {"PyTorchJob": "OnFailure", "PaddleJob": "OnFailure"}
"""Of roles that say nothing; `Never` of all other kinds."""


def suspension(ref: Ref) -> Place | None:
    """Return where *ref*'s kind is suspended; None if it has no such field, or no way back."""
    name = (ref.group, ref.kind)
    if name in (JOB, JOBSET):
        return ("spec", "suspend")
    return ("spec", "runPolicy", "suspend") if name in REMADE else None


def is_idle(obj: Json, pods: Iterable[PodView]) -> bool:
    """Return whether *obj*, which is suspended, is known to be so and has no pod at work."""
    status = mapping_at(obj, ("status",))
    if not _is_true(status, ("Suspended",)) or status.get("active"):
        return False
    return not any(pod.phase in ("Pending", "Running") for pod in pods)


def has_ended(obj: Json) -> bool:
    """Return whether *obj* has ended, or is going."""
    is_going = found(obj, ("metadata", "deletionTimestamp")) is not None
    return is_going or _is_true(mapping_at(obj, ("status",)), _ENDS)


def no_retry(chain: Iterable[Json], *, num_failed: int) -> str:
    """Return why nobody would try again after a death of a pod; empty if somebody would.

    *chain* is the pod's controllers, the direct one first. *num_failed* is how many pods of that
    one failed, as far as they are there: its own count may not have them yet.
    """
    chain = tuple(chain)
    if not chain:
        return "nobody makes it anew"
    reasons = [_no_retry(obj, num_failed if obj is chain[0] else 0) for obj in chain]
    # A JobSet makes its Jobs anew; a CronJob does not.
    is_remade = len(chain) > 1 and not reasons[1] and chain[1].get("kind") == "JobSet"
    if len(chain) > 1 and chain[1].get("kind") == "JobSet" and has_ended(chain[1]):
        return reasons[1]
    return "" if is_remade else reasons[0]


def _no_retry(obj: Json, num_failed: int) -> str:
    if has_ended(obj):
        return "it has ended"
    kind, spec, status = obj.get("kind"), *(mapping_at(obj, (key,)) for key in ("spec", "status"))
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    if (group, kind) == JOB:
        limit = _number(spec.get("backoffLimit"), DEFAULT_BACKOFF)
        failed = max(num_failed, _number(status.get("failed"), 0))
        return f"backoffLimit {limit} is used up" if failed > limit else ""
    if (group, kind) == JOBSET:
        most = _number(mapping_at(spec, ("failurePolicy",)).get("maxRestarts"), 0)
        restarts = _number(
            status.get("restartsCountTowardsMax"), _number(status.get("restarts"), 0)
        )
        is_left = restarts < most
        return "" if is_left else f"failurePolicy.maxRestarts {most} is used up"
    if (group, str(kind)) in REMADE:
        return _no_retry_kubeflow(spec, default=_DEFAULT_POLICY.get(str(kind), "Never"))
    return ""


def _no_retry_kubeflow(spec: Json, *, default: str) -> str:
    """Return why the operator gives up: a role with `Never`, or `ExitCode` and a status below 128.

    Source: training-operator v1.9.3 `pkg/apis/kubeflow.org/v1/*_types.go` (`RestartPolicy`).
    """
    for key, roles in spec.items():
        if key.endswith("ReplicaSpecs") and isinstance(roles, Mapping):
            policies = [
                str(each.get("restartPolicy") or default)
                for each in roles.values()
                if isinstance(each, Mapping)
            ]
            if not any(policy in _AGAIN for policy in policies):
                return f"restartPolicy {policies[0]} starts nothing again" if policies else ""
    return ""


def _is_true(status: Json, types: tuple[str, ...]) -> bool:
    return any(
        each.get("type") in types and each.get("status") == "True"
        for each in parts(status.get("conditions"))
    )


def _number(value: object, default: int) -> int:
    return value if type(value) is int else default
