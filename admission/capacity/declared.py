"""What a unit may use of a card where it declares less than the card gives.

    NodeClass, Share -> NodeClass with the smaller budget

The scheduler's own arithmetic: a part is of the memory that the scheduler divides. KAI rounds the
card down to a hundred MiB first (NVIDIA/KAI-Scheduler 72de64fc
`pkg/scheduler/api/node_info/node_info.go`, `getNodeGpuMemory`).
Not modelled: what a scheduler counts beyond the process, such as HAMi-core the context.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from admission.share import Declared, Share
from admission.values import NodeClass
from estimator.catalog import resolve_device
from estimator.deferred import Deferred
from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.units import MIB

if TYPE_CHECKING:
    import fractions
else:
    fractions = Deferred("fractions")

KAI_FRACTION = "gpu-fraction"
_KAI_STEP = 100 * MIB


def shared_classes(classes: Iterable[NodeClass], share: Share | None) -> tuple[NodeClass, ...]:
    """Return *classes* as a unit that declares *share* has them."""
    if share is None or share.problem:
        return tuple(classes)
    return tuple(_shared(node_class, share) for node_class in classes)


def raised(declared: Declared, nbytes: int) -> str:
    """Return the declaration that gives *nbytes*, as it would be written; empty if none does."""
    share = declared.share
    if not share.key or nbytes > declared.whole_bytes:
        return ""
    if share.part is None:
        return f"{share.key}: {_amount(share, nbytes)}"
    hundredths = ceil(fractions.Fraction(100 * nbytes, declared.base_bytes))
    if hundredths >= 100:
        return ""
    written = f"0.{hundredths:02}" if share.key == KAI_FRACTION else str(hundredths)
    return f"{share.key}: {written}" if _counts_one_card(share) else ""


def _amount(share: Share, nbytes: int) -> str:
    if share.unit_bytes < MIB:
        # Bytes, of all of the container's cards together where it names several.
        return f"{ceil(nbytes * share.unit_bytes / MIB)}Mi"
    return str(ceil(nbytes / share.unit_bytes))


def _counts_one_card(share: Share) -> bool:
    """Return whether the number written is of one card, not of several together."""
    _, _, written = share.text.rpartition(": ")
    return share.key == KAI_FRACTION or written == str(int(100 * (share.part or 0)))


def _shared(node_class: NodeClass, share: Share) -> NodeClass:
    device = node_class.device
    if device is None or device.budget_bytes is None:
        return node_class
    if share.profile:
        found = _sliced(node_class, device, share)
        if not isinstance(found, Device):
            return replace(node_class, device=None, unknown_reason=found)
        node_class, device = replace(node_class, device=found), found
    base = _base(node_class, device, share)
    whole = device.budget_bytes or 0
    nbytes = share.nbytes if share.part is None else int(share.part * base)
    if nbytes is None or nbytes >= whole:
        return node_class
    return replace(
        node_class,
        device=replace(device, budget_bytes=nbytes),
        declared=Declared(share=share, whole_bytes=whole, base_bytes=base),
    )


def _base(node_class: NodeClass, device: Device, share: Share) -> int:
    """Return what a part is a part of."""
    total = node_class.divided_bytes or device.total_bytes or device.budget_bytes or 0
    return total - total % _KAI_STEP if share.key == KAI_FRACTION else total


def _sliced(node_class: NodeClass, device: Device, share: Share) -> Device | str:
    """Return the MIG slice that a claim asks for, of the class's card."""
    if node_class.sharing == "mig":
        return device
    card = device.catalog_name
    if card is None:
        return f"slices of {node_class.product} are not in the catalog"
    try:
        return resolve_device(f"{card}/{share.profile}")
    except EstimatorError:
        return f"{card} has no MIG profile {share.profile}"
