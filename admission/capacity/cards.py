"""Which cards a node gives to pods, as its labels have it.

    Node -> Cards, one a resource

Never guesses a size: a card whose memory is not known says why. What an operator says of nodes
(`nodes.classes` in the settings) counts before all of it.
Not modelled: nodes with cards of several kinds (their labels name one), NVIDIA vGPU profiles,
ResourceSlices of DRA.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from admission.capacity.identity import identify, product_of
from admission.capacity.offers import NOT_MODELLED, Look, Offer, look_of, offers_of
from admission.capacity.sharing import MIG, SHARED, client_device, division_of, suffix_of
from admission.capacity.told import NOTHING_TOLD, ToldCards
from admission.values import Json
from admission.workloads.fields import mapping
from estimator.device import Device
from estimator.units import MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What one node gives for one unit of one resource."""

    name: str
    product: str
    resource: str
    num_gpus: int
    """How many of them the node has when it is healthy and empty."""
    sharing: str
    device: Device | None
    unknown_reason: str | None = None
    divided_bytes: int | None = None
    """What percentages are of, where a scheduler counts more than the card has."""


class Cards:
    """Reads nodes; those that look alike are worked out once."""

    def __init__(self, told: ToldCards = NOTHING_TOLD) -> None:
        self._told = told
        self._known: dict[tuple[Look, Device | None], tuple[Card, ...]] = {}

    @property
    def num_looks(self) -> int:
        """Return how many kinds of node were worked out."""
        return len(self._known)

    def of(self, node: Json) -> tuple[Card, ...]:
        """Return the cards of *node*, one a resource that pods can ask for; none for a CPU node.

        Raises:
            RequestError: if the Node is malformed.
        """
        metadata = mapping(node.get("metadata"), "metadata")
        told = self._told.card_of(mapping(metadata.get("labels"), "metadata.labels"))
        key = (look_of(node), told)
        if key not in self._known:
            self._known[key] = tuple(_card(offer, told) for offer in offers_of(key[0]))
        return self._known[key]


def _card(offer: Offer, told: Device | None) -> Card:
    prefix = offer.resource.removesuffix(SHARED)
    product = told.name if told is not None else product_of(offer)
    division = division_of(offer.resource, product, offer.num_gpus, offer.labels)
    sharing = offer.scheduler or division.sharing
    card = Card(
        name=product or prefix,
        product=product,
        resource=offer.resource,
        num_gpus=offer.num_gpus,
        sharing=sharing,
        device=None,
    )
    if prefix in NOT_MODELLED:
        return replace(card, unknown_reason=f"cards of {prefix} are not modelled")
    device = told if told and not prefix.startswith(MIG) else identify(offer, product)
    if isinstance(device, str):
        return replace(card, unknown_reason=device)
    if offer.scheduler:
        name = product.removesuffix("-SHARED") or device.name
        return replace(card, name=name, device=device, divided_bytes=_divided(offer, device))
    client = client_device(device, division)
    if isinstance(client, str):
        return replace(card, unknown_reason=client)
    bare = product.removesuffix("-SHARED") or device.name
    return replace(card, name=f"{bare}{suffix_of(division)}", device=client)


def _divided(offer: Offer, device: Device) -> int | None:
    """Return the memory that the scheduler divides, if it is more than the card has."""
    kinds = offer.registered.kinds if offer.registered else (("", offer.announced_mib or 0),)
    divided = max(memory for _, memory in kinds) * MIB
    return divided if divided > (device.total_bytes or 0) else None
