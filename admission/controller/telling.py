"""What is said and written of an object that was judged after it was admitted.

Judgement -> Tell, annotations; object -> guard against changes meanwhile
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from admission.codes import Verdict
from admission.controller.acts import Merge, Reason
from admission.controller.refs import Ref
from admission.steer.notes import notes_of
from admission.values import Json, Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What came of a judgement, without the object it is said of."""

    reason: Reason
    note: str
    is_warning: bool
    digest: str
    """Of the deciding spec: what makes it another Event."""


def outcome(judgement: Judgement) -> Said:
    """Return what came of *judgement*: what it needs, and where that fits."""
    reason, is_warning = Reason.ESTIMATED, False
    if judgement.verdict is Verdict.OOM:
        reason, is_warning = Reason.TOO_LARGE, True
    elif judgement.verdict in (Verdict.UNKNOWN, Verdict.SKIPPED):
        reason, is_warning = Reason.NOT_ESTIMATED, judgement.verdict is Verdict.UNKNOWN
    digests = (judged.estimate.spec_digest for judged in judgement.units if judged.estimate)
    return Said(
        reason=reason,
        note=judgement.message.replace("\n", " "),
        is_warning=is_warning,
        digest=next(digests, ""),
    )


def noted(on: Ref, judgement: Judgement) -> Merge:
    """Return what writes down *judgement* on an object: annotations may change at any time."""
    notes: dict[str, Any] = dict(notes_of(judgement.units, verdict=judgement.verdict))
    return Merge(on=on, changes={"metadata": {"annotations": notes}})


def same_version(obj: Json) -> Json:
    """Return the operation that has the API server refuse a patch of what has changed since.

    409 rather than the 422 of a failed test, which is also what a kind's own rules answer.
    Source: kubernetes v1.36.3 `staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go`.
    """
    version = obj["metadata"]["resourceVersion"]
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": version}


def moves_pods(patch: tuple[Json, ...]) -> bool:
    """Return whether *patch* changes where pods go, rather than only what is said of them."""
    return any(
        part in ("affinity", "nodeSelector")
        for operation in patch
        for part in str(operation["path"]).split("/")
    )
