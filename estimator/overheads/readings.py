"""The published readings, read once from data/readings.yaml.

    nothing -> readings of contexts and libraries

What each column means stands at the top of that file. Never measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from estimator.catalog.gpu import Gpu
from estimator.catalog.gpus import gpu_named
from estimator.documents import read_document
from estimator.overheads.architectures import Architecture, architecture_of
from estimator.overheads.loading import Loading
from estimator.overheads.ranges import Spread
from estimator.units import MIB

MACHINE = "a100-2024"
"""The one machine whose readings disagree with all others; see the file."""


class Holds(StrEnum):
    """What is in a reading; each includes the ones before it."""

    CONTEXT = "context"
    KERNELS = "kernels"
    CUDNN = "cudnn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one process held on one card beside its allocator's segments, in MiB."""

    gpu: Gpu
    loading: Loading
    torch: str
    driver: str | None
    holds: Holds
    mib: Spread
    fitted: bool
    source: str

    @property
    def architecture(self) -> Architecture:
        """Return the architecture of the card."""
        architecture = architecture_of(self.gpu.compute_capability)
        assert architecture is not None, self.gpu
        return architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Context and kernels, and what convolutions add, on the machine of 2024, in MiB."""

    kernels: Spread
    cudnn: Spread


@cache
def all_readings() -> tuple[Reading, ...]:
    """Return every reading, in the order of the file."""
    document = _document()
    return tuple(
        _reading(row, loading) for loading in Loading for row in document.get(loading.value, ())
    )


@cache
def machine_of_2024() -> Machine:
    """Return the readings of the A100 that our mlp-a100 and timm-a100 cases were run on."""
    row = _document()[MACHINE]
    return Machine(
        kernels=Spread(low=row["kernels"][0], expected=row["median"], high=row["kernels"][1]),
        cudnn=Spread(low=row["cudnn"][0], expected=row["cudnnMedian"], high=row["cudnn"][1]),
    )


@cache
def _document() -> Any:
    text = files("estimator.overheads").joinpath("data/readings.yaml").read_text("utf-8")
    return read_document(text, path="readings.yaml")


def _reading(row: Any, loading: Loading) -> Reading:
    gpu = gpu_named(row["card"])
    assert gpu is not None, row
    return Reading(
        gpu=gpu,
        loading=loading,
        torch=str(row["torch"]),
        driver=row.get("driver"),
        holds=Holds(row["holds"]),
        mib=_mib(row),
        fitted=row.get("fitted", False),
        source=row["source"],
    )


def _mib(row: Any) -> Spread:
    """Return a reading: given, given as a span, or what the three figures of a text leave."""
    if "text" in row:
        in_use, allocated, unallocated = (_size_mib(size) for size in row["text"])
        rest = in_use - allocated - unallocated
        return Spread(low=rest, expected=rest, high=rest)
    given = row["mib"]
    low, high = given if isinstance(given, list) else (given, given)
    return Spread(low=low, expected=(low + high) / 2, high=high)


def _size_mib(text: str) -> float:
    """Return `14.25 GiB` or `912.01 MiB` in MiB."""
    number, unit = text.split()
    return float(number) * {"GiB": 1024, "MiB": 1, "KiB": 1 / 1024}[unit]


def ratio(reading: Reading, nbytes: int) -> Spread:
    """Return *reading* as a multiple of *nbytes*."""
    return Spread(
        low=reading.mib.low * MIB / nbytes,
        expected=reading.mib.expected * MIB / nbytes,
        high=reading.mib.high * MIB / nbytes,
    )


def beyond(reading: Reading, nbytes: int) -> Spread:
    """Return what of *reading* is beyond *nbytes*, in MiB."""
    return Spread(
        low=reading.mib.low - nbytes / MIB,
        expected=reading.mib.expected - nbytes / MIB,
        high=reading.mib.high - nbytes / MIB,
    )
