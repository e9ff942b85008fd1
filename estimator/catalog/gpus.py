"""The cards we know, read once from data/gpus.yaml.

    name or product label -> Gpu

Never asks a driver or a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from estimator.catalog.gpu import Gpu, MigProfile, Origin, Source
from estimator.catalog.products import card_key, product_label
from estimator.catalog.reservation import assumed_reservation
from estimator.device import ComputeCapability
from estimator.documents import read_own
from estimator.units import MIB


@cache
def all_gpus() -> tuple[Gpu, ...]:
    """Return every card of the catalog, oldest architecture first."""
    text = Path(__file__).with_name("data").joinpath("gpus.yaml").read_text("utf-8")
    document: Any = read_own(text)
    sources = {name: _source(line, {}) for name, line in document["sources"].items()}
    tables = {name: _mig_profiles(table, sources) for name, table in document["migTables"].items()}
    return tuple(_gpu(card, sources, tables) for card in document["cards"])


def gpu_named(text: str) -> Gpu | None:
    """Return the card with this catalog name, in any case."""
    return _by_name().get(text.strip().casefold())


def recognise(product: str, *, total_mib: int | None = None) -> Gpu | None:
    """Return the card of a product label, whole or of the slice or share it names.

    Two sizes of one card carry the same label (RTX 4060 Ti, RTX 3080): *total_mib* picks the
    nearest, and without it the smaller one is meant. `-MIG-INVALID` is no card.
    """
    label = product_label(product)
    if label.is_invalid:
        return None
    cards = _by_label().get(label.card, ())
    if label.profile is not None or total_mib is None:
        return min(cards, key=lambda gpu: gpu.total_mib, default=None)
    return min(cards, key=lambda gpu: abs(gpu.total_mib - total_mib), default=None)


@cache
def _by_name() -> Mapping[str, Gpu]:
    return {gpu.name: gpu for gpu in all_gpus()}


@cache
def _by_label() -> Mapping[str, tuple[Gpu, ...]]:
    found: dict[str, tuple[Gpu, ...]] = {}
    for gpu in all_gpus():
        for key in {card_key(label) for label in (gpu.product, *gpu.labels)}:
            found[key] = (*found.get(key, ()), gpu)
    return found


def _gpu(
    card: Mapping[str, Any],
    sources: Mapping[str, Source],
    tables: Mapping[str, tuple[MigProfile, ...]],
) -> Gpu:
    compute = _compute(card["compute"])
    total = card["totalMiB"]
    rule = -(-assumed_reservation(total * MIB, compute_capability=compute) // MIB)
    return Gpu(
        name=card["name"],
        product=card["product"],
        labels=tuple(card.get("labels", ())),
        architecture=card["architecture"],
        compute_capability=compute,
        multiprocessors=card["multiprocessors"],
        total_mib=total,
        total_source=_source(card["totalSource"], sources),
        reservation_mib=card.get("reservationMiB", rule),
        reservation_source=_source(card["reservationSource"], sources),
        mig=tables[card["mig"]] if "mig" in card else (),
    )


def _mig_profiles(
    table: Mapping[str, Any], sources: Mapping[str, Source]
) -> tuple[MigProfile, ...]:
    source = _source(table["source"], sources)
    return tuple(
        MigProfile(name=name, memory_mib=memory, multiprocessors=multiprocessors, source=source)
        for name, memory, multiprocessors in table["profiles"]
    )


def _source(text: str, sources: Mapping[str, Source]) -> Source:
    origin, colon, rest = text.partition(": ")
    return Source(origin=Origin(origin), text=rest) if colon else sources[text]


def _compute(text: str) -> ComputeCapability:
    """Return `8.6` as (8, 6)."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)
