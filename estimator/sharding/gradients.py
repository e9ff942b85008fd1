"""Whole gradients of the units that ran, and this rank's share of them.

    Rewriter, Holding -> events

A reduction leaves one flat share a unit, which its gradients are views of: it is there until the
first of them goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from estimator.sharding.holding import Holding, Way
from estimator.sharding.rewriting import Rewriter
from estimator.trace import EventKind, Role

NONE = -1


@dataclass(slots=True)
class Gradients:
    """The gradients one rank has."""

    out: Rewriter
    holding: Holding
    whole: dict[int, dict[int, int]] = field(default_factory=dict)
    """Whole gradients of a unit: the traced tensor and what stands for it."""
    reducing: int | None = None
    """The buffer of the last reduction."""
    passing: int | None = None
    """ZeRO-3: the last whole gradient, until it is in the bucket."""
    trained: dict[int, int] = field(default_factory=dict)
    """Bytes of each unit's gradients, as traced, once known."""
    held: set[int] = field(default_factory=set)
    """Gradients whose share is there."""
    gone: set[int] = field(default_factory=set)
    """Gradients that were used up while they were whole: an optimizer in the backward pass."""
    flat: dict[int, int] = field(default_factory=dict)
    """The flat share of a unit's gradients."""
    unit_of: dict[int, int] = field(default_factory=dict)
    """The unit of each traced gradient."""
    whole_flat: dict[int, int] = field(default_factory=dict)
    """Flat gradients that wait for the last micro-batch, by unit."""

    def made(self, tensor: int, unit: int, place: int) -> None:
        """Make a whole gradient: it stays until its unit is done, or until it is in the bucket."""
        made = self.out.alloc(self.out.trace.sizes[tensor], Role.GRADIENT, place)
        if self.holding.is_zero:
            self.pass_on(place)
            self.passing = made
        self.unit_of[tensor] = unit
        self.whole.setdefault(unit, {})[tensor] = made

    def is_whole(self, tensor: int) -> bool:
        """Return whether *tensor* is a gradient that waits for its unit."""
        return tensor in self.whole.get(self.unit_of.get(tensor, NONE), {})

    def freed(self, event: int, tensor: int, place: int) -> None:
        """Do what the end of the traced *tensor* means for this rank."""
        if self.is_whole(tensor):
            self.gone.add(tensor)
            return  # the whole gradient goes with its unit
        self.out.keep(event)
        self.drop_flat(self.unit_of.get(tensor, NONE), place)

    def pass_on(self, place: int) -> None:
        """ZeRO-3: the last gradient is in the bucket."""
        if self.passing is not None:
            self.out.free(self.passing, place)
            self.passing = None

    def reduce(self, unit: int, place: int, *, is_first: bool) -> None:
        """Reduce the whole gradients of *unit*; *is_first*: in the first micro-batch of a step."""
        whole = self.whole.pop(unit, {})
        fresh = sum(self.out.trace.sizes[tensor] for tensor in whole)
        traced = self.trained[unit] = max(self.trained.get(unit, 0), fresh)
        if not traced:
            return
        if not self.holding.is_zero:
            made = list(whole.values())
            if not fresh:
                made.append(self.out.alloc(traced, Role.GRADIENT, place))
            self._reduce_whole(unit, made, traced, is_first=is_first, place=place)
        for tensor in whole.keys() - self.gone:
            # A view of the flat share, or of ZeRO-3's partition.
            self.out.sizes[tensor] = 0
            self.out.append(EventKind.ALLOC, tensor, place)
            self.held.add(tensor)
        if whole and whole.keys() <= self.gone:
            self.drop_flat(unit, place)
        self.gone -= whole.keys()

    def _reduce_whole(
        self, unit: int, made: list[int], traced: int, *, is_first: bool, place: int
    ) -> None:
        """Copy the whole gradients *made* into one buffer and reduce that.

        In later micro-batches the trace has no gradients of its own: they are added. The ranks'
        are whole once more until they are reduced, and their shares are added to the first ones.
        """
        holding, out = self.holding, self.out
        is_flat = holding.how.way is Way.FSDP1
        size = holding.units.weights[unit] if is_flat else traced
        if holding.how.accumulates and is_flat and is_first:
            self.whole_flat[unit] = out.alloc(size, Role.GRADIENT, place)
            self._free(made, place)
            return
        self.drop_reduction(place)
        nbytes = size * holding.shares.reduce // holding.shares.traced
        stream = holding.reduce_stream if is_flat else 0
        self.reducing = out.alloc(nbytes, Role.COMMUNICATION, place, stream=stream)
        self._free(made, place)
        if unit in self.whole_flat:
            out.free(self.whole_flat.pop(unit), place)
        share = holding.share(size, Role.GRADIENT)
        own = out.alloc(share, Role.GRADIENT, place, stream=holding.reduce_stream)
        if unit in self.flat:
            out.free(own, place)
        else:
            self.flat[unit] = own

    def _free(self, tensors: list[int], place: int) -> None:
        for tensor in tensors:
            self.out.free(tensor, place)

    def drop_flat(self, unit: int, place: int) -> None:
        """Let go of the flat share of *unit*, whose parts are no more."""
        if unit in self.flat:
            self.out.free(self.flat.pop(unit), place)

    def drop_reduction(self, place: int) -> None:
        """Let go of the buffer of the last reduction."""
        if self.reducing is not None:
            self.out.free(self.reducing, place)
            self.reducing = None
