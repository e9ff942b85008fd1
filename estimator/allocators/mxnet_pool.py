"""MXNet's three pools of device memory.

    tensor id, bytes, stream -> allocated, reserved

A pool asks the driver for each block, and keeps what is freed for a request of exactly the same
rounded size: nothing is split or merged. Before it asks, it gives every free block back if less
than a share of the card (`MXNET_GPU_MEM_POOL_RESERVE`) would be left; if the driver refuses, it
gives them back and asks once more.

* `Naive`: whole pages of 4 KiB, above 2 MiB whole 2 MiB. Releases before 1.3 add 32 bytes instead.
* `Round`: powers of two, above 2^24 multiples of that.
* `Unpooled`: every block comes from the driver and goes back.

Scratch memory of operators is one block of its own that only grows (`ResourceTempSpace`): the
stream `SCRATCH_STREAM`.
Source: apache/mxnet@1.9.1 `src/storage/pooled_storage_manager.h`, `src/storage/storage.cc`,
`src/resource.cc` (`SpaceAllocator`); 0.11.0 and 1.3.1 of the first.
Not modelled: that the driver hands small blocks out of 2 MiB of its own; several engine threads;
`MXNET_GPU_TEMP_COPY` above one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from estimator.notes import Unknown, UnknownCode
from estimator.trace import SCRATCH_STREAM
from estimator.units import MIB, round_up

PREFIX = "MXNET_GPU_MEM_POOL_"
LARGE = "MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE"
PADDING = 32
"""Bytes added to every request before 1.3 (`NDEV`)."""
ROUNDS_SINCE = (1, 3)
LARGEST_CUTOFF = 34
SMALLEST_CUTOFF = 20


class PoolKind(StrEnum):
    """`MXNET_GPU_MEM_POOL_TYPE`."""

    NAIVE = "Naive"
    ROUND = "Round"
    UNPOOLED = "Unpooled"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPolicy:
    """How a job has its pool set up; an `AllocatorPolicy`."""

    kind: PoolKind = PoolKind.NAIVE
    page: int = 4096
    large: int = 2 * MIB
    cutoff: int = 24
    """Exponent from which `Round` is linear."""
    reserve: int = 5
    """Percent of the card that is kept free of cached blocks."""
    rounds_pages: bool = True

    def allocator(self, *, capacity: int | None = None, allowed: int | None = None) -> MxnetPool:
        """Return a fresh pool; MXNet has no cap of its own, so both limits are one."""
        limits = [limit for limit in (capacity, allowed) if limit is not None]
        return MxnetPool(self, capacity=min(limits, default=None))

    def limit(self, usable: int, *, beside: int) -> int | None:  # noqa: ARG002 - of the Protocol
        """Return that a job may take all of a card."""
        return None

    def preallocated(self, usable: int, *, beside: int) -> int | None:  # noqa: ARG002 - of it too
        """Return that nothing is taken at the start."""
        return None

    def rounded(self, nbytes: int) -> int:
        """Return the size of the block that serves a request."""
        if self.kind is PoolKind.UNPOOLED:
            return nbytes
        if self.kind is PoolKind.ROUND:
            return self._power(nbytes)
        if not self.rounds_pages:
            return nbytes + PADDING
        size = round_up(nbytes, self.page)
        return round_up(size, self.large) if size > self.large else size

    def _power(self, nbytes: int) -> int:
        exponent = max((nbytes - 1).bit_length(), (self.page - 1).bit_length())
        if exponent > self.cutoff:
            return round_up(nbytes, 1 << self.cutoff)
        return 1 << exponent


class MxnetPool:
    """One pool of one card. *capacity* is what the driver can give to it.

    The scratch block counts as allocated while a call uses it, as reserved always.
    All that is cached goes back before a request is refused, so a run completes under a capacity
    if that holds what is not cached at each moment: `edge`.
    """

    def __init__(self, policy: PoolPolicy | None = None, *, capacity: int | None = None) -> None:
        self.policy = policy or PoolPolicy()
        self.allocated = 0
        self.reserved = 0
        self.edge = 0
        """The most bytes that were not cached: blocks of tensors, and the scratch block."""
        self._held = 0
        self._capacity = capacity
        self._kept_free = 0 if capacity is None else capacity * self.policy.reserve // 100
        self._keeps = self.policy.kind is not PoolKind.UNPOOLED
        self._free: dict[int, int] = {}
        """Number of free blocks by size."""
        self._rounded: dict[int, int] = {0: 0}
        self._sizes: dict[int, int] = {}
        self._scratch = 0

    def allocate(self, tensor: int, nbytes: int, stream: int = 0) -> bool:
        """Give *tensor* a block; False if the driver has none even after all is given back."""
        size = self._rounded.get(nbytes)
        if size is None:
            size = self._rounded[nbytes] = self.policy.rounded(nbytes)
        if stream == SCRATCH_STREAM:
            if size > self._scratch and not self._grow_scratch(size):
                return False
            size = -self._scratch
        else:
            if self._free.get(size):
                self._free[size] -= 1
            elif not self._take(size):
                return False
            self._held += size
            if self._held > self.edge:
                self.edge = self._held
        self._sizes[tensor] = size
        self.allocated += abs(size)
        return True

    def free(self, tensor: int) -> None:
        """Put the block of *tensor* into the pool; scratch stays where it is."""
        size = self._sizes.pop(tensor)
        self.allocated -= abs(size)
        if size <= 0:  # scratch, or no bytes at all
            return
        self._held -= size
        if self._keeps:
            self._free[size] = self._free.get(size, 0) + 1
        else:
            self.reserved -= size

    def use(self, tensor: int) -> None:
        """Do nothing: the engine orders what shares memory."""

    def synchronize(self) -> None:
        """Do nothing: no block waits for the device."""

    def empty_cache(self) -> None:
        """Give every free block back (`mx.context.empty_cache`, `ReleaseAll`)."""
        self.reserved -= sum(size * count for size, count in self._free.items())
        self._free.clear()

    def release_pool(self, pool: int) -> None:
        """Do nothing: there are no private pools."""

    def _take(self, size: int) -> bool:
        """Take a block from the driver."""
        if self._capacity is not None:
            if self.reserved + size > self._capacity - self._kept_free:
                self.empty_cache()
            if self.reserved + size > self._capacity:
                return False
        self.reserved += size
        return True

    def _grow_scratch(self, size: int) -> bool:
        """Replace the scratch block, which goes to the driver before a larger one is taken."""
        before = self._scratch
        self.reserved -= before
        if self._free.get(size):
            self._free[size] -= 1
        elif not self._take(size):
            self.reserved += before
            return False
        self._scratch = size
        self._held += size - before
        self.edge = max(self.edge, self._held)
        return True


def pool_policy(
    environment: Mapping[str, str], *, version: tuple[int, int]
) -> tuple[PoolPolicy, tuple[Unknown, ...]]:
    """Return the pool of a job's *environment*, and what of it is not understood."""
    unknowns: list[Unknown] = []

    def number(name: str, default: int, least: int, most: int) -> int:
        text = environment.get(name)
        if text is None:
            return default
        if text.isascii() and text.isdigit() and len(text) < 16 and least <= int(text) <= most:
            return int(text)
        unknowns.append(_odd(name, text, f"a whole number from {least} to {most}"))
        return default

    kind = PoolKind.NAIVE
    word = environment.get(f"{PREFIX}TYPE")
    if word is not None:
        if word in set(PoolKind):
            kind = PoolKind(word)
        else:
            unknowns.append(_odd(f"{PREFIX}TYPE", word, f"one of {', '.join(PoolKind)}"))
    policy = PoolPolicy(
        kind=kind,
        page=number(f"{PREFIX}PAGE_SIZE", 4096, PADDING, 1 << 30),
        large=number(LARGE, 2 * MIB, 1, 1 << 40),
        cutoff=number(f"{PREFIX}ROUND_LINEAR_CUTOFF", 24, SMALLEST_CUTOFF, LARGEST_CUTOFF),
        reserve=number(f"{PREFIX}RESERVE", 5, 0, 100),
        rounds_pages=version >= ROUNDS_SINCE,
    )
    return policy, tuple(unknowns)


def _odd(name: str, text: str, accepted: str) -> Unknown:
    return Unknown(
        code=UnknownCode.ALLOCATOR,
        path=f"runtime.env.{name}",
        reason=f"'{text[:64]}' is not {accepted}; its default was used",
    )
