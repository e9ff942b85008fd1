"""The allocator a TensorFlow job gets.

Runtime, compute capability -> BfcPolicy, unknowns

TensorFlow takes all of a card at its start but a reserve for the system, unless it is told to
grow: `set_memory_growth`, `TF_FORCE_GPU_ALLOW_GROWTH`, which beats it, or a limit in bytes
(`runtime.allocatorCapBytes`, a logical device's memory limit, per_process_gpu_memory_fraction).
What is taken at the start says nothing of the need.

Source: tensorflow/tensorflow tensorflow/core/common_runtime/gpu/gpu_device.cc (`MinSystemMemory`,
`SingleVirtualDeviceMemoryLimit`), gpu_bfc_allocator.cc (`GetAllowGrowthValue`,
`GetGarbageCollectionValue`), gpu_process_state.cc (`TF_GPU_ALLOCATOR`), read in copies whose commit
is not known; the reserve by compute capability and its variable come with
tensorflow/tensorflow#44810 (November 2020). Not modelled: the reserve before that, which was 6 % of
what is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from estimator.allocators.bfc import BfcAllocator, BfcSettings
from estimator.notes import Unknown, UnknownCode
from estimator.spec.training import Runtime
from estimator.units import GIB, MIB

GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"
COLLECTION = "TF_ENABLE_GPU_GARBAGE_COLLECTION"
KIND = "TF_GPU_ALLOCATOR"
RESERVED = "TF_DEVICE_MIN_SYS_MEMORY_IN_MB"
WORDS = {"true": True, "false": False}

MOST_DIGITS = 12
"""More MiB than any card has; int() of a longer text is work for nothing."""

SMALL_CARD = 2 * GIB
SMALL_RESERVE = 225 * MIB
RESERVES: tuple[tuple[int, int], ...] = ((6, 500 * MIB), (7, 1050 * MIB), (8, 1536 * MIB))
"""Newest compute capability, and what is left to the system on such cards."""
NEWEST_RESERVE = 1800 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class BfcPolicy:
    """A TensorFlow job's settings as an `AllocatorPolicy`."""

    settings: BfcSettings
    capability: int
    """The major number of the card's compute capability."""
    has_own_limit: bool = False
    """Whether the job says in bytes what its allocator may hold."""
    own_reserve: int | None = None
    """Bytes the job says it leaves to the system."""

    def allocator(self, *, capacity: int | None = None, allowed: int | None = None) -> BfcAllocator:
        """Return a fresh allocator."""
        return BfcAllocator(self.settings, limit=allowed, capacity=capacity)

    def limit(self, usable: int, *, beside: int) -> int | None:
        """Return what TensorFlow leaves itself: what is free when it starts, less a reserve."""
        if self.has_own_limit:
            return None
        free = max(0, usable - beside)
        if self.own_reserve is not None and self.own_reserve <= free:
            return free - self.own_reserve
        return max(0, free - reserve_of(free, self.capability))

    def preallocated(self, usable: int, *, beside: int) -> int | None:
        """Return the whole limit, unless the pool grows or the job sets a limit of its own."""
        return None if self.settings.allow_growth else self.limit(usable, beside=beside)


def bfc_policy(
    runtime: Runtime, *, capability: tuple[int, int]
) -> tuple[BfcPolicy, tuple[Unknown, ...]]:
    """Return the policy *runtime* asks for on cards of *capability*, and what is not modelled."""
    unknowns: list[Unknown] = []
    forced = _word(runtime.env, GROWTH, unknowns)
    collects = _word(runtime.env, COLLECTION, unknowns)
    kind = runtime.env.get(KIND, "")
    if kind:
        unknowns.append(
            Unknown(
                code=UnknownCode.ALLOCATOR,
                path=f"runtime.env.{KIND}",
                reason=f"the allocator '{kind:.40}' is not modelled; BFC's rules are used instead",
            )
        )
    settings = BfcSettings(
        allow_growth=runtime.allow_growth if forced is None else forced,
        garbage_collection=collects is not False,
    )
    policy = BfcPolicy(
        settings=settings,
        capability=capability[0],
        has_own_limit=bool(runtime.allocator_cap_bytes),
        own_reserve=_reserved(runtime.env.get(RESERVED), unknowns),
    )
    return policy, tuple(unknowns)


def reserve_of(free: int, capability: int) -> int:
    """Return what TensorFlow leaves to the system of *free* bytes."""
    if free < SMALL_CARD:
        return SMALL_RESERVE
    return next((reserve for newest, reserve in RESERVES if capability <= newest), NEWEST_RESERVE)


def _reserved(text: str | None, unknowns: list[Unknown]) -> int | None:
    """Return the bytes a variable in MiB leaves to the system, None if it does not say."""
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS:
        return int(text) * MIB
    unknowns.append(
        Unknown(
            code=UnknownCode.ALLOCATOR,
            path=f"runtime.env.{RESERVED}",
            reason=f"'{text:.40}' is no number of MiB: TensorFlow ignores it",
        )
    )
    return None


def _word(env: Mapping[str, str], name: str, unknowns: list[Unknown]) -> bool | None:
    """Return a variable that is true or false, None if it is not set or neither."""
    text = env.get(name)
    if text is None:
        return None
    found = WORDS.get(text.lower())
    if found is None:
        unknowns.append(
            Unknown(
                code=UnknownCode.ALLOCATOR,
                path=f"runtime.env.{name}",
                reason=f"'{text:.40}' is neither true nor false: TensorFlow ignores it",
            )
        )
    return found
