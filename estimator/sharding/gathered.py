"""Weights that are gathered when a unit needs them and given back after it: FSDP, ZeRO-3.

    Trace of the whole job, Units, Shares -> Trace of one rank

FSDP2, in forward: a buffer is gathered (from 16-bit copies of wider shards, gone after it), the
buffer before it goes, the weights are copied out; they go when the unit is done
(`reshard_after_forward`), the buffer when the next one is gathered or the root is done. In backward
the unit before is gathered ahead, the last one as soon as backward begins, and a buffer goes once
copied out; whole gradients live until the unit is done; then its weights go, the buffer of the last
reduction, and gradients are copied into a new one, of which this rank keeps its share. The root
stays whole from its first use to the end of backward. So at most the root and three units in
forward, and two of gradients beside them in backward. Gathered buffers and shares of gradients come
from streams of their own (`holding.py`); whole weights and gradients from the default one.
FSDP1 gathers straight into flat weights, one unit ahead in backward, and has one flat gradient a
unit, as large as its weights, frozen ones included (`use_orig_params`).
ZeRO-3 gathers into the weights too; parameters of at most 1e5 elements stay whole; gradients go
through a bucket that is there from the start, into a partition that is too; masters are fp32.

Source: pytorch 2.15.0 `distributed/fsdp/_fully_shard/_fsdp_param_group.py` (`wait_for_unshard`,
`post_backward`), `_fsdp_state.py` (`_post_forward`), `_fsdp_collectives.py`; `distributed/fsdp/
_flat_param.py`, `_runtime_utils.py` (`_post_backward_hook`); microsoft/DeepSpeed@38327e07
`runtime/zero/stage3.py`. FSDP2 is compared with torch's own on fake tensors in the tests.
Trainers accumulate under FSDP1's `no_sync`: flat gradients stay whole until the last micro-batch
(Lightning-AI/litgpt@26857050 `finetune/lora.py`; huggingface/accelerate 1.15.0 `accelerator.py`).
Not modelled: explicit prefetching further ahead, FSDP2 without reduction while it accumulates (it
reduces every time here, as torchtitan does), padding to the group's size, weights ZeRO-3 keeps
because they are soon used again (`max_live_parameters`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from estimator.sharding.gradients import Gradients
from estimator.sharding.holding import SUB_GROUP_ELEMENTS, Gathering, Holding
from estimator.sharding.rewriting import Rewriter
from estimator.sharding.shares import FP32, Shares
from estimator.sharding.units import ROOT, Units
from estimator.sharding.weights import Weights
from estimator.trace import EventKind, Phase, Role, Trace

STATE = (Role.PARAMETER, Role.OPTIMIZER)
NONE = -1
COMPUTING = (Phase.FORWARD, Phase.BACKWARD, Phase.EVALUATION, Phase.GENERATION)


def gathered(trace: Trace, units: Units, shares: Shares, how: Gathering) -> Trace:
    """Return what one rank of a group that shares weights does to its memory."""
    holding = Holding(units=units, shares=shares, how=how)
    out = Rewriter(trace)
    return _Rank(out, holding, Weights(out, holding), Gradients(out, holding)).run()


@dataclass(slots=True)
class _Rank:
    out: Rewriter
    holding: Holding
    weights: Weights
    gradients: Gradients
    current: int = NONE
    phase: Phase = Phase.LOAD
    place: int = 0
    """The place of the last event: what ends a phase belongs to it."""
    done: set[int] = field(default_factory=set)
    backward: tuple[int, int] = (0, 0)
    """The step, and how many backward passes it has had."""
    stepping: list[int] = field(default_factory=list)

    def run(self) -> Trace:
        trace = self.out.trace
        for event in range(len(trace.kinds)):
            place = trace.places[event]
            self.move(place)
            self.event(event, place)
            self.place = place
        self.leave()
        return self.out.result()

    def move(self, place: int) -> None:
        """Enter the phase and the unit of *place*."""
        phase = self.out.trace.place_table[place].phase
        if phase is not self.phase:
            self.leave()
            self.enter(phase, place)
        unit = self.holding.units.of_place[place]
        if phase not in COMPUTING or unit in (ROOT, self.current) or unit in self.done:
            return
        self.finish(place)
        self.current = unit
        self.gather(unit, place)
        if phase is Phase.BACKWARD and unit - 1 > ROOT:
            self.weights.fetch(unit - 1, place)

    def enter(self, phase: Phase, place: int) -> None:
        """Begin *phase*."""
        if self.phase is Phase.LOAD and self.holding.is_zero:
            self.weights.load(place)
        self.phase = phase
        self.done.clear()
        if phase in COMPUTING:
            self.gather(ROOT, place)
        if phase is Phase.BACKWARD:
            step = self.out.trace.place_table[place].step
            self.backward = (step, self.backward[1] + 1 if self.backward[0] == step else 1)
            last = self.holding.units.count - self.holding.units.others - 1
            if last > ROOT:
                self.weights.fetch(last, place)
        is_master = self.holding.shares.master and not self.holding.is_away(Role.OPTIMIZER)
        if phase is Phase.OPTIMIZER and is_master:
            part = self.holding.part(sum(self.gradients.trained.values()))
            elements = min(part, SUB_GROUP_ELEMENTS)
            self.stepping.append(self.out.alloc(elements * FP32, Role.COMMUNICATION, place))

    def leave(self) -> None:
        """End the phase: the unit that runs, and what is whole without need."""
        place = self.place
        self.finish(place)
        if self.phase is Phase.BACKWARD:
            self.reduce(ROOT, place)
            self.gradients.drop_reduction(place)
            self.gradients.pass_on(place)
            self.weights.give_all_back(place)
        elif self.phase in (Phase.EVALUATION, Phase.GENERATION):
            self.weights.give_back(ROOT, place)
        self.weights.drop_buffers(place)
        for tensor in self.stepping:
            self.out.free(tensor, place)
        self.stepping = []

    def finish(self, place: int) -> None:
        """Do what follows a unit."""
        if self.current == NONE:
            return
        unit, self.current = self.current, NONE
        self.done.add(unit)
        is_kept = unit == self.holding.units.kept or not self.holding.how.reshards
        if self.phase is not Phase.FORWARD or not is_kept:
            self.weights.give_back(unit, place)
        if self.phase is Phase.BACKWARD:
            self.reduce(unit, place)

    def gather(self, unit: int, place: int) -> None:
        self.weights.gather(unit, place, is_backward=self.phase is Phase.BACKWARD)

    def reduce(self, unit: int, place: int) -> None:
        self.gradients.reduce(unit, place, is_first=self.backward[1] == 1)

    def event(self, event: int, place: int) -> None:
        """Copy an event, or do what stands for it."""
        trace = self.out.trace
        kind, tensor = trace.kinds[event], trace.ids[event]
        if kind not in (EventKind.ALLOC, EventKind.FREE):
            self.out.keep(event)
            return
        if kind == EventKind.FREE:
            self.gradients.freed(event, tensor, place)
            return
        role = trace.roles[tensor]
        if role == Role.GRADIENT and self.phase is Phase.BACKWARD:
            self.whole(tensor, place)
            return
        if self.phase is Phase.OPTIMIZER:
            self.out.sizes[tensor] = self.holding.share(trace.sizes[tensor], Role.OPTIMIZER)
        elif role in STATE:
            self.out.sizes[tensor] = self.holding.share(trace.sizes[tensor], role)
        self.out.keep(event)

    def whole(self, tensor: int, place: int) -> None:
        """Make a whole gradient.

        A gradient of the root, the embedding's, comes after the unit before it is done.
        """
        unit = self.holding.units.of_place[place]
        if unit == ROOT:
            self.finish(place)
        self.gradients.made(tensor, unit, place)
