"""Whole weights of the units that run: gathered, given back.

Rewriter, Holding -> events
"""

from __future__ import annotations

from dataclasses import dataclass, field

from estimator.sharding.holding import Holding, Way
from estimator.sharding.rewriting import Rewriter
from estimator.spec.vocabulary import Offload
from estimator.trace import Role


@dataclass(slots=True)
class Weights:
    """The whole weights one rank has, and the buffers they come in."""

    out: Rewriter
    holding: Holding
    whole: dict[int, int] = field(default_factory=dict)
    """Whole weights that are there now, by unit."""
    buffers: dict[int, int] = field(default_factory=dict)
    """Gathered buffers, by unit."""

    def load(self, place: int) -> None:
        """Put on the card what ZeRO-3's engine makes before the first step."""
        holding, out = self.holding, self.out
        shares, units = holding.shares, holding.units
        bucket = holding.how.zero.reduce_bucket_elements * shares.reduce
        out.alloc(bucket, Role.COMMUNICATION, place)
        small = sum(units.small)
        if small:
            out.alloc(small * (shares.group - 1) // shares.group, Role.PARAMETER, place)
        elements = holding.part(units.trained_bytes)
        if not holding.is_away(Role.GRADIENT) and elements:
            out.alloc(elements * shares.reduce, Role.GRADIENT, place)
        if not holding.is_away(Role.OPTIMIZER) and elements and shares.master:
            out.alloc(elements * shares.master, Role.OPTIMIZER, place)

    def fetch(self, unit: int, place: int) -> None:
        """Start to gather *unit*: from shards in its dtype, copied first where they are kept wider.

        Shards on the host are copied to the card first too.
        """
        holding, out = self.holding, self.out
        nbytes = holding.gathered_bytes(unit)
        if not nbytes or unit in self.whole or unit in self.buffers:
            return
        shares, stream = holding.shares, holding.gather_stream
        is_copied = shares.weight != shares.traced or shares.offload is Offload.PARAMETERS
        if is_copied and not holding.is_zero:
            size = -(-nbytes // shares.group)
            copied = out.alloc(size, Role.COMMUNICATION, place, stream=stream)
        self.buffers[unit] = out.alloc(nbytes, Role.COMMUNICATION, place, stream=stream)
        if is_copied and not holding.is_zero:
            out.free(copied, place)

    def gather(self, unit: int, place: int, *, is_backward: bool) -> None:
        """Have the whole weights of *unit*."""
        nbytes = self.holding.gathered_bytes(unit)
        if not nbytes or unit in self.whole:
            return
        self.fetch(unit, place)
        if self.holding.how.way is not Way.FSDP2:
            tensor = self.buffers.pop(unit)
            self.out.roles[tensor] = Role.PARAMETER
            self.whole[unit] = tensor
            return
        for other in [each for each in self.buffers if each != unit and not is_backward]:
            self.out.free(self.buffers.pop(other), place)
        self.whole[unit] = self.out.alloc(nbytes, Role.PARAMETER, place)
        if is_backward:
            self.out.free(self.buffers.pop(unit), place)

    def give_back(self, unit: int, place: int) -> None:
        """Free the whole weights of *unit* if they are there."""
        tensor = self.whole.pop(unit, None)
        if tensor is not None:
            self.out.free(tensor, place)

    def give_all_back(self, place: int) -> None:
        """Free the whole weights of every unit."""
        for unit in list(self.whole):
            self.give_back(unit, place)

    def drop_buffers(self, place: int) -> None:
        """Free what was gathered and not copied out, or copied out and not needed."""
        for unit in list(self.buffers):
            self.out.free(self.buffers.pop(unit), place)
