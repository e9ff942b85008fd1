"""Which cards a pod wants, or does not, by HAMi's annotations.

    annotations, NodeClass -> bool

Only nodes whose cards HAMi shares are asked: nobody else reads these annotations.
Source: Project-HAMi/HAMi 4707fb02 `pkg/device/devices.go` (`CheckType`).
Not modelled: the choice of single cards by UUID.
"""

from __future__ import annotations

from admission.values import NodeClass, Unit
from admission.workloads.fields import mapping

USE = "nvidia.com/use-gputype"
NO_USE = "nvidia.com/nouse-gputype"


def is_wanted(unit: Unit, node_class: NodeClass) -> bool:
    """Return whether the annotations of the pods let them have cards of *node_class*.

    Raises:
        RequestError: if annotations are no mapping.
    """
    if node_class.sharing != "hami" or not node_class.product:
        return True
    annotations = mapping(unit.pod_metadata.get("annotations"), "metadata.annotations")
    wanted, unwanted = annotations.get(USE), annotations.get(NO_USE)
    if wanted and not _names(str(wanted), node_class.product):
        return False
    return not (unwanted and _names(str(unwanted), node_class.product))


def _names(listed: str, product: str) -> bool:
    """Return whether one of the words is part of the product: HAMi writes spaces, labels dashes."""
    card = product.upper().replace("-", " ")
    words = (word.strip().upper().replace("-", " ") for word in listed.split(","))
    return any(word in card for word in words if word)
