"""Generations of cards, and the stack a CUDA context keeps for each thread they can hold.

compute capability, multiprocessors -> Architecture, bytes
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache

from estimator.catalog.gpus import all_gpus
from estimator.device import ComputeCapability
from estimator.units import KIB


class Architecture(StrEnum):
    """A generation of cards whose kernels are about equally large."""

    KEPLER = "kepler"
    PASCAL = "pascal"
    VOLTA = "volta"
    TURING = "turing"
    AMPERE_SERVER = "ampere-server"
    AMPERE = "ampere"
    ADA = "ada"
    HOPPER = "hopper"
    BLACKWELL = "blackwell"


BY_MAJOR: Mapping[int, Architecture] = {
    3: Architecture.KEPLER,
    5: Architecture.PASCAL,
    6: Architecture.PASCAL,
    7: Architecture.VOLTA,
    8: Architecture.AMPERE,
    9: Architecture.HOPPER,
    10: Architecture.BLACKWELL,
    11: Architecture.BLACKWELL,
    12: Architecture.BLACKWELL,
}

STACK = 1 * KIB
"""Default of `cudaLimitStackSize`, a thread. Source: an A100's 108 multiprocessors keep 216 MiB
(arcs-skku/EMDC_llvm#13), which is 1 KiB for each of 2,048 threads of each."""

THREADS: Mapping[ComputeCapability, int] = {
    (7, 5): 1024,
    (8, 6): 1536,
    (8, 7): 1536,
    (8, 9): 1536,
    (11, 0): 1536,
    (12, 0): 1536,
    (12, 1): 1536,
}
"""Resident threads of a multiprocessor. Source: CUDA C++ Programming Guide, technical
specifications per compute capability."""
MOST_THREADS = 2048
"""All others: 3.x to 7.0, 8.0, 9.0, 10.0."""


def architecture_of(capability: ComputeCapability) -> Architecture | None:
    """Return the architecture of a compute capability, None for one we have no figures for."""
    if capability == (8, 0):
        return Architecture.AMPERE_SERVER
    if capability == (8, 9):
        return Architecture.ADA
    if capability == (7, 5):
        return Architecture.TURING
    return BY_MAJOR.get(capability[0])


def stack_bytes(capability: ComputeCapability, multiprocessors: int) -> int:
    """Return the stack of all threads that can be on a card, or a slice, at once."""
    return STACK * THREADS.get(capability, MOST_THREADS) * multiprocessors


@cache
def stacks_of(architecture: Architecture) -> tuple[int, ...]:
    """Return the stacks of the catalog's cards of *architecture*, in order of size."""
    return tuple(
        sorted(
            stack_bytes(gpu.compute_capability, gpu.multiprocessors)
            for gpu in all_gpus()
            if architecture_of(gpu.compute_capability) is architecture
        )
    )
