"""TensorFlow's BFC allocator, byte for byte.

    tensor id, bytes -> allocated, reserved

Rounds to 256 bytes, takes the smallest free chunk that is large enough (the lower address of two
equal ones), splits it only if the rest is worth it, merges neighbours on free, and asks the
driver for a region only if no chunk fits. `allocated` counts whole chunks, as TensorFlow's
`bytes_in_use` does.

A growing pool doubles its regions, and `reserved` is what they are together (`pool_bytes`). A
pool that does not grow takes its limit at the first request, which says nothing of the need:
there `reserved` is how much of it has ever been used, counted from its start.

The 21 bins of the source hold chunks by rising powers of two and are searched upwards, each in
the order of size and address: that is one list in that order. Regions get rising made-up
addresses and never touch (the allocator of CUDA memory does not support coalescing).

Not modelled: where a driver really puts its regions, and so which of two equal free chunks of
different regions is taken (one region, which is TensorFlow's own choice on a card, has none such);
that a failed request waits ten seconds for another thread to free memory (one step runs at a
time); timestamped frees (`TF_GPU_ALLOCATOR` settings of TPU-like devices).

Source: tensorflow/tensorflow@5263072435bff96f5d4bcea137cfb3755dca8f7f
third_party/xla/xla/tsl/framework/bfc_allocator.cc (`Extend`, `AllocateRawInternal`,
`FindChunkPtr`, `TryToCoalesce`, `DeallocateFreeRegions`).
`test_tensorflow_real.py` replays what TensorFlow's own allocator did on the CPU.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from estimator.allocators.blocks import Block, Pool
from estimator.units import MIB, round_up

CHUNK = 256
"""Bytes every request is rounded up to (`kMinAllocationSize`)."""
FIRST_REGION = 2 * MIB
LEAST_REST = 128 * MIB
"""A chunk less than twice the request is split if at least this much would be lost."""
BACKPEDAL = 0.9
"""A region the driver refuses is asked for again at this share, until it would not serve."""
REGION_GAP = 1 << 66
"""Distance of made-up region addresses: more than any region holds, as sizes have 63 bits."""
BOUNDLESS = 1 << 64
"""A pool without a limit that does not grow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BfcSettings:
    """How a pool grows, splits and gives back."""

    allow_growth: bool = False
    garbage_collection: bool = True
    """Wholly free regions go back to the driver before a request fails."""
    fragmentation_fraction: float = 0.0
    """Share of the limit that may be lost in one chunk instead of 128 MiB; 0: not set."""
    first_region: int = FIRST_REGION


class BfcAllocator:
    """One pool. *limit* is what it may hold in all, *capacity* what the driver can give.

    None: no limit. Without growth the smaller of both is one region. *region_address* says where a
    region lies by how many were opened before it.
    """

    def __init__(
        self,
        settings: BfcSettings | None = None,
        *,
        limit: int | None = None,
        capacity: int | None = None,
        region_address: Callable[[int], int] | None = None,
    ) -> None:
        self.settings = settings or BfcSettings()
        self.allocated = 0
        self.reserved = 0
        self.num_regions_opened = 0
        bounds = [bound for bound in (limit, capacity) if bound is not None]
        self._grows = self.settings.allow_growth
        self._limit = limit if self._grows else min(bounds, default=BOUNDLESS)
        self._capacity = capacity
        first = self.settings.first_region if self._grows else BOUNDLESS
        self._next_region = round_up(
            first if self._limit is None else min(self._limit, first), CHUNK
        )
        share = self.settings.fragmentation_fraction
        self._least_rest = (
            int(share * self._limit) if share > 0 and self._limit is not None else LEAST_REST
        )
        self._free = Pool(is_small=False, stream=0, least_rest=CHUNK)
        self._live: dict[int, Block | None] = {}
        self._heads: dict[int, tuple[Block, int]] = {}
        self._region_address = region_address or _rising

    def allocate(self, tensor: int, nbytes: int, stream: int = 0) -> bool:  # noqa: ARG002
        """Give *tensor* the smallest chunk that serves; False is out of memory.

        There is one pool for every stream: a device has one compute stream.
        """
        if nbytes <= 0:
            self._live[tensor] = None
            return True
        size = round_up(nbytes, CHUNK)
        chunk = self._take(size)
        if chunk is None and self._extend(size):
            chunk = self._take(size)
        if chunk is None and self._give_free_regions_back(size) and self._extend(size):
            chunk = self._take(size)
        if chunk is None:
            return False
        self._live[tensor] = chunk
        self.allocated += chunk.size
        if not self._grows:
            self.reserved = max(self.reserved, chunk.address + chunk.size - REGION_GAP)
        return True

    def free(self, tensor: int) -> None:
        """Take the chunk of *tensor* back and merge it with its free neighbours."""
        chunk = self._live.pop(tensor)
        if chunk is None:
            return
        self.allocated -= chunk.size
        after = chunk.after
        if after is not None and after.is_free:
            self._free.remove(after)
            chunk.absorb_after()
        before = chunk.before
        if before is not None and before.is_free:
            self._free.remove(before)
            before.absorb_after()
            chunk = before
        chunk.is_free = True
        self._free.add(chunk)

    def use(self, tensor: int) -> None:
        """Ignore it: a device has one compute stream, and copies are ordered by events."""

    def synchronize(self) -> None:
        """Do nothing: no chunk waits."""

    def empty_cache(self) -> None:
        """Do nothing: TensorFlow has no such call."""

    def release_pool(self, pool: int) -> None:
        """Do nothing: there are no private pools."""

    def address_of(self, tensor: int) -> int | None:
        """Return where the chunk of *tensor*, which is alive, begins; None if it holds nothing."""
        chunk = self._live[tensor]
        return None if chunk is None else chunk.address

    def chunks(self) -> Iterator[tuple[int, int, bool]]:
        """Yield address, size and whether it is free of every chunk, by region."""
        for head, _ in self._heads.values():
            chunk: Block | None = head
            while chunk is not None:
                yield chunk.address, chunk.size, chunk.is_free
                chunk = chunk.after

    def _take(self, size: int) -> Block | None:
        """Return the best free chunk for *size*, split if the rest is worth it."""
        entries = self._free.entries
        index = bisect_left(entries, (size,))
        if index == len(entries):
            return None
        chunk = entries[index][2]
        del entries[index]
        if chunk.size >= 2 * size or chunk.size - size >= self._least_rest:
            rest = chunk.split(size)
            rest.is_free = True
            insort(entries, (rest.size, rest.address, rest))
        chunk.is_free = False
        return chunk

    def _extend(self, size: int) -> bool:
        """Take a region that serves *size*; return whether the driver gave one."""
        if not self._grows and self._heads:
            return False
        available = None if self._limit is None else (self._limit - self.reserved) // CHUNK * CHUNK
        if available is not None and size > available:
            return False
        has_grown = False
        while size > self._next_region:
            self._next_region *= 2
            has_grown = True
        nbytes = self._next_region if available is None else min(self._next_region, available)
        while not self._is_given(nbytes):
            nbytes = round_up(_backpedalled(nbytes), CHUNK)
            if nbytes < size or nbytes == 0:
                return False
        if not has_grown:
            self._next_region *= 2
        region = Block(self._region_address(self.num_regions_opened), nbytes, self._free)
        region.is_free = True
        self._heads[region.address] = (region, nbytes)
        self._free.add(region)
        if self._grows:
            self.reserved += nbytes
        self.num_regions_opened += 1
        return True

    def _is_given(self, nbytes: int) -> bool:
        return self._capacity is None or self.reserved + nbytes <= self._capacity

    def _give_free_regions_back(self, size: int) -> bool:
        """Return every wholly free region to the driver if that may serve *size*."""
        if not (self._grows and self.settings.garbage_collection):
            return False
        free = [(head, nbytes) for head, nbytes in self._heads.values() if self._is_idle(head)]
        freed = sum(nbytes for _, nbytes in free)
        if not freed:
            return False
        if self._limit is not None and size > self._limit - self.reserved + freed:
            return False
        for head, nbytes in free:
            self._free.remove(head)
            del self._heads[head.address]
            self.reserved -= nbytes
        return True

    @staticmethod
    def _is_idle(head: Block) -> bool:
        """Return whether the region is one free chunk: free neighbours are always merged."""
        return head.is_free and head.is_whole


def _rising(num_regions: int) -> int:
    """Return a made-up address above those of the *num_regions* before."""
    return REGION_GAP * (num_regions + 1)


def _backpedalled(nbytes: int) -> int:
    """Return *nbytes* times `BACKPEDAL`, in the single precision the source computes in."""
    return int(_single(_single(nbytes) * _single(BACKPEDAL)))


def _single(value: float) -> float:
    (rounded,) = struct.unpack("f", struct.pack("f", value))
    return float(rounded)
