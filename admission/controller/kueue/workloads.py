"""Kueue's Workloads: what is kept of them, and what one says that waits for its checks.

    Workload -> Queued (kept) ; Workload, read whole -> Waiting

Source: kubernetes-sigs/kueue v0.19.2 `apis/kueue/v1beta2/workload_types.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from admission.controller.pods import moment
from admission.controller.refs import Ref, owner_of
from admission.values import Json
from admission.workloads.fields import MAX_COUNT, part, parts, word, words_of

GROUP = "kueue.x-k8s.io"
VERSIONS = (f"{GROUP}/v1beta2", f"{GROUP}/v1beta1")
"""The newest first."""
PENDING, READY, RETRY, REJECTED = "Pending", "Ready", "Retry", "Rejected"
_RAN = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
"""How long it was admitted before: in v1beta2, and as v1beta1 spells it."""
MAX_POD_SETS = 64
"""Kueue allows 18."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """What is kept of a Workload: whether one of its checks waits for an answer."""

    ref: Ref
    owner: Ref | None
    checks: Mapping[str, str] = field(default_factory=dict)
    """Check -> state."""
    reserved: str = ""
    """Since when it has quota, as the API server writes it; empty without."""
    admitted: bool = False
    over: bool = False
    """Finished, evicted, deactivated or being deleted: nothing is asked of it."""

    @property
    def key(self) -> str:
        """Return `NAMESPACE/NAME`."""
        return f"{self.ref.namespace}/{self.ref.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Pods of one template, and what they were assigned."""

    name: str
    template: Json
    """As Kueue copied it when it made the Workload."""
    flavors: Mapping[str, str]
    """Resource -> ResourceFlavor. Kueue puts the labels of all of them on the pods."""
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A Workload with quota, read whole."""

    ref: Ref
    cluster_queue: str
    pod_sets: tuple[PodSet, ...]
    checks: tuple[Json, ...]
    assignments: Json | None
    """As they stand in the object: an answer is about these."""
    reserved: datetime | None
    has_run: bool = False
    """It was admitted before, and taken back."""


def queued_of(obj: Json, *, api_version: str) -> Queued:
    """Return what is kept of *obj*; items of a list do not say their kind."""
    meta, spec, status = (part(part(obj).get(key)) for key in ("metadata", "spec", "status"))
    namespace = word(meta.get("namespace"))
    is_over = (
        bool(meta.get("deletionTimestamp"))
        or spec.get("active") is False
        or any(_condition(status, kind) for kind in ("Finished", "Evicted", "DeactivationTarget"))
    )
    reserved = _condition(status, "QuotaReserved")
    return Queued(
        ref=Ref(
            api_version=api_version,
            kind="Workload",
            namespace=namespace,
            name=word(meta.get("name")),
            uid=word(meta.get("uid")),
        ),
        owner=owner_of(meta, namespace=namespace),
        checks={word(each.get("name")): word(each.get("state")) for each in _checks(status)},
        reserved=word(reserved.get("lastTransitionTime")) if reserved else "",
        admitted=_condition(status, "Admitted") is not None,
        over=is_over,
    )


def waiting_of(obj: Json, queued: Queued) -> Waiting:
    """Return what *obj*, the same Workload read whole, says of its pods and their flavors."""
    spec, status = (part(part(obj).get(key)) for key in ("spec", "status"))
    admission = part(status.get("admission"))
    assigned = {
        word(each.get("name")): each for each in _mappings(admission.get("podSetAssignments"))
    }
    return Waiting(
        ref=queued.ref,
        cluster_queue=word(admission.get("clusterQueue")),
        pod_sets=tuple(
            _pod_set(each, assigned.get(word(each.get("name")) or "main") or {})
            for each in _mappings(spec.get("podSets"))
        ),
        checks=tuple(_checks(status)),
        assignments=admission.get("podSetAssignments"),
        reserved=moment(queued.reserved),
        has_run=any(key in status for key in _RAN),
    )


def _pod_set(obj: Json, assigned: Json) -> PodSet:
    count = assigned.get("count", obj.get("count", 1))
    return PodSet(
        name=word(obj.get("name")) or "main",
        template=part(obj.get("template")),
        flavors=words_of(assigned.get("flavors")),
        count=count if type(count) is int and 0 <= count <= MAX_COUNT else 1,
    )


def _condition(status: Json, kind: str) -> Json | None:
    """Return the condition of that type, if it is true."""
    for each in _mappings(status.get("conditions")):
        if each.get("type") == kind and each.get("status") == "True":
            return each
    return None


def _checks(status: Json) -> list[Json]:
    return _mappings(status.get("admissionChecks"))


def _mappings(value: Any) -> list[Json]:
    return list(parts(value)[:MAX_POD_SETS])
