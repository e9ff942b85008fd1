"""Which AdmissionChecks are ours, that they are answered, and the answers as they are written.

    AdmissionCheck -> condition Active; Waiting, state, message -> JSON Patch of its status

Source: kubernetes-sigs/kueue v0.19.2 `apis/kueue/v1beta2/admissioncheck_types.go`; a ClusterQueue
whose check has no condition Active admits nothing (`pkg/cache/scheduler/clusterqueue.go`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from admission.controller.kueue.workloads import Waiting
from admission.controller.refs import Ref
from admission.plaintext import plain
from admission.values import Json
from admission.workloads.fields import number, part, parts, word

CONTROLLER = "vramgate.dev/gpu-memory"
"""`spec.controllerName` of the AdmissionChecks that are ours."""
ACTIVE = "Active"
MAX_MESSAGE = 2000
"""Kueue takes 32,768 characters; `kubectl describe` is read by people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One AdmissionCheck of ours."""

    ref: Ref
    is_active: bool
    """Its condition says so, of the object as it is now."""
    others: tuple[Json, ...]
    """Conditions of other types: they stay."""
    generation: int


def check_of(obj: Json, *, api_version: str) -> Check | None:
    """Return what is kept of an AdmissionCheck; None if it is another controller's."""
    meta, spec, status = (part(part(obj).get(key)) for key in ("metadata", "spec", "status"))
    if spec.get("controllerName") != CONTROLLER:
        return None
    generation = number(meta.get("generation"))
    conditions = parts(status.get("conditions"))
    return Check(
        ref=Ref(
            api_version=api_version,
            kind="AdmissionCheck",
            namespace="",
            name=word(meta.get("name")),
            uid=word(meta.get("uid")),
        ),
        is_active=any(
            each.get("type") == ACTIVE
            and each.get("status") == "True"
            and each.get("observedGeneration", generation) == generation
            for each in conditions
        ),
        others=tuple(each for each in conditions if each.get("type") != ACTIVE),
        generation=generation,
    )


def activation(check: Check, *, now: datetime) -> Json:
    """Return what to merge into the status of *check*, so that queues may ask it."""
    active = {
        "type": ACTIVE,
        "status": "True",
        "reason": ACTIVE,
        "message": "vramgate controller answers this check",
        "observedGeneration": check.generation,
        "lastTransitionTime": written(now),
    }
    return {"status": {"conditions": [*check.others, active]}}


def answers(
    waiting: Waiting,
    names: frozenset[str],
    *,
    before: str,
    state: str,
    message: str,
    now: datetime,
    requeue_seconds: int | None = None,
) -> tuple[Json, ...]:
    """Return the operations that set the checks of *names* that are in state *before*.

    They apply to the very assignment that was judged, and to no check that was answered since: of
    a Workload that got other flavors meanwhile none is taken. Empty if there is no such check.
    """
    found: list[Json] = []
    for index, check in enumerate(waiting.checks):
        if word(check.get("name")) not in names or check.get("state") != before:
            continue
        place = f"/status/admissionChecks/{index}"
        value: dict[str, Any] = {
            **{key: check[key] for key in ("retryCount",) if key in check},
            "name": check["name"],
            "state": state,
            "message": plain(message, limit=MAX_MESSAGE),
            "lastTransitionTime": written(now),
        }
        if requeue_seconds is not None:
            value["requeueAfterSeconds"] = requeue_seconds
        found += [
            {"op": "test", "path": f"{place}/name", "value": check["name"]},
            {"op": "test", "path": f"{place}/state", "value": before},
            {"op": "replace", "path": place, "value": value},
        ]
    if not found:
        return ()
    assigned = "/status/admission/podSetAssignments"
    return ({"op": "test", "path": assigned, "value": waiting.assignments}, *found)


def written(moment: datetime) -> str:
    """Return *moment* as the API server writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
