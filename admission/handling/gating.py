"""Whether a Pod waits, at its CREATE, for an estimate that is late.

    Review, Judgement, settings -> yes or no

Somebody has to take the gate off again: only where the settings say that there is a controller.
The namespaces where that one lives, and the cluster's own, are not sent to the webhook at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.codes import NOT_YET, Operation, Steer
from admission.decision import OBSERVED_KINDS
from admission.policy_settings import SteeringSettings
from admission.review import Review
from admission.steer.permission import is_queued
from admission.steer.terms import recorded
from admission.values import Json, Judgement

NAMESPACES = ("kube-system", "kube-node-lease", "kube-public")
"""Whose pods never wait, whatever the webhook's registration says."""


def is_to_wait(
    review: Review, judgement: Judgement, *, settings: SteeringSettings, steer: Steer
) -> bool:
    """Return whether the Pod under review is held until its estimate is there.

    Not one that was steered with its owner's template, that is bound to a node (the API server
    takes no gate then), that serves, or that a queue holds.
    """
    if not settings.gate or steer is Steer.OFF or review.operation is not Operation.CREATE:
        return False
    if (review.api_version, review.kind) != ("v1", "Pod") or review.namespace in NAMESPACES:
        return False
    metadata, spec = (_mapping(review.object.get(key)) for key in ("metadata", "spec"))
    if spec.get("nodeName") or is_queued(metadata) or recorded(metadata) or _serves(metadata):
        return False
    return any(judged.reason in NOT_YET for judged in judgement.units)


def _serves(metadata: Json) -> bool:
    """Return whether a controller made it whose pods are only counted."""
    owners = metadata.get("ownerReferences")
    return isinstance(owners, list | tuple) and any(
        isinstance(owner, Mapping) and owner.get("kind") in OBSERVED_KINDS for owner in owners
    )


def _mapping(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}
