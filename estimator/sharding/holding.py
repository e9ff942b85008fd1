"""Whose gathering it is, and how much of everything one rank of it holds.

Units, Shares, Gathering -> bytes
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from estimator.sharding.shares import Shares
from estimator.sharding.units import Units
from estimator.spec.training import Zero
from estimator.spec.vocabulary import Offload
from estimator.trace import Role

PERSISTENT_ELEMENTS = 100_000
"""ZeRO-3's `stage3_param_persistence_threshold`: smaller parameters are never given back."""
SUB_GROUP_ELEMENTS = 1_000_000_000
"""ZeRO-3's `sub_group_size`: so many elements are stepped at once, their gradients in fp32."""
GATHER_STREAM, REDUCE_STREAM = 2, 3
"""Streams of FSDP's own; the allocator never gives a block of one to another.

Source: pytorch 2.15.0 `distributed/fsdp/_fully_shard/_fsdp_collectives.py` (`foreach_all_gather`
makes its buffers on `all_gather_copy_in_stream`, `foreach_reduce` its output on
`reduce_scatter_stream`; its input and the weights copied out are the default stream's),
`distributed/fsdp/_runtime_utils.py` (`_unshard`, `_post_backward_hook`: flat weights on the stream
that gathers, both ends of a reduction on the other one)."""


class Way(Enum):
    """Whose gathering it is."""

    FSDP2 = auto()
    FSDP1 = auto()
    ZERO3 = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """What differs between the implementations."""

    way: Way
    reshards: bool = True
    """Whether weights are given back between forward and backward."""
    zero: Zero = field(default_factory=Zero)
    accumulates: bool = False
    """Whether gradients of all micro-batches but the last stay whole, unreduced (`no_sync`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one rank holds. Sizes are bytes."""

    units: Units
    shares: Shares
    how: Gathering

    @property
    def is_zero(self) -> bool:
        """Return whether the engine is DeepSpeed's."""
        return self.how.way is Way.ZERO3

    @property
    def gather_stream(self) -> int:
        """Return the stream that gathered buffers come from."""
        return 0 if self.is_zero else GATHER_STREAM

    @property
    def reduce_stream(self) -> int:
        """Return the stream that reduced gradients come from."""
        return 0 if self.is_zero else REDUCE_STREAM

    def gathered_bytes(self, unit: int) -> int:
        """Return the bytes that are gathered for *unit*."""
        if self.how.way is Way.FSDP2 and self.units.gathered:
            return self.units.gathered[unit]
        return self.units.weights[unit] - (self.units.small[unit] if self.is_zero else 0)

    def is_away(self, role: int) -> bool:
        """Return whether what has *role* is on the host."""
        offload = self.shares.offload
        if offload is Offload.NONE:
            return False
        return offload is Offload.PARAMETERS or role in (Role.OPTIMIZER, Role.GRADIENT)

    def share(self, nbytes: int, role: int) -> int:
        """Return one rank's bytes of what has *nbytes* in the trace."""
        if self.is_away(role):
            return 0
        width = self.shares.weight
        if role == Role.OPTIMIZER and self.shares.master:
            width = self.shares.master
        return -(-nbytes * width // self.shares.traced // self.shares.group)

    def part(self, nbytes: int) -> int:
        """Return this rank's elements of what has *nbytes* in the trace."""
        return -(-nbytes // self.shares.traced // self.shares.group)
