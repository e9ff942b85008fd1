"""What the controller keeps its hands off.

    object, settings, labels of its namespace -> yes or no

Labels and modes mean the same here as at admission. A queue's objects are each duty's own question.
"""

from __future__ import annotations

from admission.codes import Mode, Operation
from admission.controller.parts import Parts
from admission.controller.refs import ref_of
from admission.inventory import is_ignored
from admission.review import Review
from admission.values import Json

NAMESPACES = ("kube-system", "kube-node-lease", "kube-public")


def is_own(namespace: str, parts: Parts) -> bool:
    """Return whether *namespace* is the cluster's own or ours: nothing there is ever touched."""
    return namespace in NAMESPACES or namespace == parts.namespace


def is_left_alone(obj: Json, parts: Parts) -> bool:
    """Return whether *obj*, a whole object, is not to be told of or changed.

    It is where the mode is `off`, and where a label of the object or its namespace says `ignore`.
    """
    ref, policies = ref_of(obj), parts.judges.policies
    if is_own(ref.namespace, parts) or parts.inventory.is_ignored(ref.namespace):
        return True
    if is_ignored(obj.get("metadata") or {}) or not policies.policy.enabled:
        return True
    review = Review(
        uid="",
        api_version=ref.api_version,
        kind=ref.kind,
        resource="",
        operation=Operation.UPDATE,
        namespace=ref.namespace,
        name=ref.name,
        object=obj,
    )
    return policies.mode_of(review) is Mode.OFF
