"""What a node offers to pods: resources, how many cards, and what is told of each card's memory.

    Node -> Offers, one a resource

Source of the shared resources' units: `admission/workloads/shares.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from admission.capacity.labels import GPU, annotations_of, labels_of, whole
from admission.capacity.registration import (
    ANNOTATIONS,
    HAMI,
    VOLCANO,
    Registration,
    registration_of,
)
from admission.capacity.sharing import MIG, SHARED
from admission.capacity.vendors import Named, named_cards
from admission.values import Json
from admission.workloads import shares
from admission.workloads.fields import mapping
from admission.workloads.quantities import whole_quantity
from estimator.units import GIB, MIB

NOT_MODELLED = ("amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")

_TOTALS: Mapping[str, tuple[str, int, str, int]] = {
    shares.VOLCANO_SHARED: ("volcano.sh/gpu-number", 1, shares.VOLCANO_SHARED, MIB),
    shares.KOORDINATOR: (shares.KOORDINATOR, 100, "koordinator.sh/gpu-memory", 1),
    shares.ALIYUN: ("aliyun.com/gpu-count", 1, shares.ALIYUN, GIB),
    shares.TENCENT: (shares.TENCENT, 100, "tencent.com/vcuda-memory", shares.TENCENT_UNIT),
}
"""Where the number of cards stands and how many units a card is; the same for its memory."""
_COUNTED = frozenset(
    {*shares.SHARED_RESOURCES, *(row[0] for row in _TOTALS.values())}
    | {row[2] for row in _TOTALS.values()}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One resource of a node, with all that the node says of the cards behind it."""

    resource: str
    num_gpus: int
    """Units of the resource; cards, where a scheduler cuts the units up."""
    labels: Mapping[str, str]
    named: Named | None
    """What a cloud's labels say."""
    registered: Registration | None = None
    announced_mib: int | None = None
    """Memory of one card as the scheduler that shares it counts."""
    scheduler: str = ""
    """Who shares the cards: hami, volcano, koordinator, aliyun, tencent. Empty: nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All of a node that is read for its cards: nodes of one pool look the same."""

    labels: tuple[tuple[str, str], ...]
    amounts: tuple[tuple[str, int], ...]
    """The larger of capacity and allocatable, of what pods can ask for as a card."""
    registrations: tuple[tuple[str, str], ...]


def look_of(node: Json) -> Look:
    """Return what is read of *node*.

    Raises:
        RequestError: if the Node is malformed.
    """
    annotations = annotations_of(node)
    return Look(
        labels=tuple(labels_of(node).items()),
        amounts=_amounts(node),
        registrations=tuple((key, annotations[key]) for key in ANNOTATIONS if key in annotations),
    )


def offers_of(look: Look) -> tuple[Offer, ...]:
    """Return what nodes that look so offer; nothing for a CPU node.

    The larger of capacity and allocatable counts: unhealthy cards come back. A node that has no
    device plugin yet (booting, or a template of an autoscaler) is taken at its labels' word.
    """
    labels, amounts = dict(look.labels), dict(look.amounts)
    registrations = dict(look.registrations)
    named = named_cards(labels)
    offers = [
        _plain(resource, count, labels, named, registrations)
        for resource, count in amounts.items()
        if _is_card(resource)
    ]
    offers += [
        _shared(resource, amounts, labels, named, registrations)
        for resource in shares.SHARED_RESOURCES
        if resource in amounts
    ]
    if not offers and (promised := _promised(labels, named)) is not None:
        offers = [Offer(resource=GPU, num_gpus=promised, labels=labels, named=named)]
    return tuple(offers)


def _amounts(node: Json) -> tuple[tuple[str, int], ...]:
    status = mapping(node.get("status"), "status")
    found: dict[str, int] = {}
    for key in ("capacity", "allocatable"):
        for resource, amount in mapping(status.get(key), f"status.{key}").items():
            if _is_card(resource) or resource in _COUNTED:
                found[resource] = max(found.get(resource, 0), whole_quantity(amount) or 0)
    return tuple((resource, amount) for resource, amount in sorted(found.items()) if amount)


def _is_card(resource: str) -> bool:
    plain = resource.removesuffix(SHARED)
    return plain == GPU or plain.startswith(MIG) or plain in NOT_MODELLED


def _plain(
    resource: str,
    count: int,
    labels: Mapping[str, str],
    named: Named | None,
    registrations: Mapping[str, str],
) -> Offer:
    """Return the offer of a device plugin; HAMi's shows each card several times."""
    registered = registration_of(registrations, HAMI) if resource == GPU else None
    return Offer(
        resource=resource,
        num_gpus=registered.count if registered else count,
        labels=labels,
        named=named,
        registered=registered,
        scheduler="hami" if registered else "",
    )


def _shared(
    resource: str,
    amounts: Mapping[str, int],
    labels: Mapping[str, str],
    named: Named | None,
    registrations: Mapping[str, str],
) -> Offer:
    """Return the offer of a scheduler that shares cards by memory."""
    registered = None
    announced: int | None = None
    count = amounts[resource]
    if resource == shares.VOLCANO:
        registered = registration_of(registrations, VOLCANO)
        count = registered.count if registered else count
    else:
        count_name, units, memory_name, unit_bytes = _TOTALS[resource]
        count = max(1, amounts.get(count_name, units) // units)
        each = amounts.get(memory_name, 0) // count
        if resource == shares.ALIYUN and each >= shares.MOST_GIB_UNITS:
            unit_bytes = MIB
        announced = each * unit_bytes // MIB or None
    return Offer(
        resource=resource,
        num_gpus=count,
        labels=labels,
        named=named,
        registered=registered,
        announced_mib=announced,
        scheduler=resource.partition(".")[0],
    )


def _promised(labels: Mapping[str, str], named: Named | None) -> int | None:
    """Return how many cards the labels promise; None if they promise none."""
    replicas = max(whole(labels.get(f"{GPU}.replicas")) or 1, 1)
    count = whole(labels.get(f"{GPU}.count")) or 0
    if count or f"{GPU}.product" in labels:
        return count * replicas
    if named is None:
        return None
    return named.count if named.count is not None else 0
