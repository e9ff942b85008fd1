"""States, and gradients, of a data-parallel group in parts; weights whole: ZeRO-1 and 2, Megatron.

    Trace of the whole job, Shares -> Trace of one rank

Weights stay as traced. Masters and states are this rank's part, in fp32.
* ZeRO: a bucket of `reduceBucketElements`, however small the model, stands from the start of
  backward to the optimizer (two where communication overlaps, which below stage 3 is off by
  default). Stage 1 keeps whole gradients; under stage 2 each goes through the bucket into this
  rank's part. The step makes an fp32 copy of its part of the gradients.
* Megatron: fp32 gradients of everything from the start; what backward makes is added to them and
  goes at once. 6 + 12/DP bytes a parameter with the distributed optimizer, 18 without.

Source: microsoft/DeepSpeed@38327e07 `runtime/zero/stage_1_and_2.py` (`backward`, `reduce_
independent_p_g_buckets_and_remove_grads`, `copy_grads_in_partition`, `step`), `config.py`
(`overlap_comm_valid`); NVIDIA/Megatron-LM@00caa53a `core/distributed/param_and_grad_buffer.py`,
`core/optimizer/distrib_optimizer.py`.
Not modelled: round-robin gradients, loss scaling's checks, padding to the group's size.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from estimator.sharding.rewriting import Rewriter
from estimator.sharding.shares import FP32, Shares
from estimator.sharding.units import trained_bytes
from estimator.spec.training import Zero
from estimator.spec.vocabulary import Offload
from estimator.trace import EventKind, Phase, Role, Trace


def partitioned(trace: Trace, shares: Shares, zero: Zero) -> Trace:
    """Return what one rank of a group that shares states does to its memory."""
    return _Rank(Rewriter(trace), shares, zero).run()


@dataclass(slots=True)
class _Rank:
    out: Rewriter
    shares: Shares
    zero: Zero
    phase: Phase = Phase.LOAD
    trained: int = 0
    """Elements that are trained."""
    states: float = 0.0
    """Tensors of state the optimizer keeps for each element."""
    bucket: list[int] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    """Gradients that were added to Megatron's."""

    def run(self) -> Trace:
        trace = self.out.trace
        self.count()
        for event in range(len(trace.kinds)):
            place = trace.places[event]
            phase = trace.place_table[place].phase
            if phase is not self.phase:
                self.enter(phase, place)
            self.event(event, place)
        return self.out.result()

    def count(self) -> None:
        """Find what is trained, and how much state there is for it."""
        trace = self.out.trace
        gradients = trained_bytes(trace)
        states = sum(
            trace.sizes[tensor]
            for kind, tensor in zip(trace.kinds, trace.ids, strict=True)
            if kind == EventKind.ALLOC and trace.roles[tensor] == Role.OPTIMIZER
        )
        self.trained = gradients // self.shares.traced
        self.states = states / gradients if gradients else 0.0

    @property
    def part(self) -> int:
        """Return this rank's elements."""
        return -(-self.trained // self.shares.group)

    def enter(self, phase: Phase, place: int) -> None:
        """Begin *phase*: buckets, masters and states come and go."""
        if self.phase is Phase.LOAD:
            self.load(place)
        if phase is not Phase.BACKWARD:
            for tensor in reversed(self.bucket):
                self.out.free(tensor, place)
            self.bucket = []
        self.phase = phase
        if self.shares.main_gradients:
            return
        if phase is Phase.BACKWARD:
            self.take(self.zero.reduce_bucket_elements * self.shares.reduce, place)
        if phase is Phase.OPTIMIZER and self.shares.offload is Offload.NONE:
            self.take(self.part * FP32, place)

    def take(self, nbytes: int, place: int) -> None:
        self.bucket.append(self.out.alloc(nbytes, Role.COMMUNICATION, place))

    def load(self, place: int) -> None:
        """Put on the card what is made before the first step: masters, states, main gradients."""
        if self.shares.main_gradients and self.trained:
            self.out.alloc(self.trained * FP32, Role.GRADIENT, place)
        if self.shares.offload is not Offload.NONE:
            return
        width = FP32 if self.shares.master else self.shares.weight
        nbytes = self.part * (self.shares.master + round(self.states * width))
        if nbytes:
            self.out.alloc(nbytes, Role.OPTIMIZER, place)

    def event(self, event: int, place: int) -> None:
        """Copy an event; traced states are replaced by this rank's, gradients may be a part."""
        trace = self.out.trace
        tensor = trace.ids[event]
        kind = trace.kinds[event]
        if kind == EventKind.FREE and tensor in self.gone:
            return
        is_gradient = (
            kind == EventKind.ALLOC
            and trace.roles[tensor] == Role.GRADIENT
            and self.phase is Phase.BACKWARD
        )
        if is_gradient and (self.shares.main_gradients or self.shares.stage > 1):
            self.pass_on(event, tensor, place)
            return
        if kind == EventKind.ALLOC:
            if trace.roles[tensor] == Role.OPTIMIZER:
                self.out.sizes[tensor] = 0
            elif self.phase is Phase.OPTIMIZER:
                self.out.sizes[tensor] = self.stepped(trace.sizes[tensor])
        self.out.keep(event)

    def pass_on(self, event: int, tensor: int, place: int) -> None:
        """Make a whole gradient that goes at once: added to Megatron's, or into the bucket."""
        if self.shares.main_gradients:
            self.out.keep(event)
            self.out.free(tensor, place)
            self.gone.add(tensor)
            return
        size = self.out.trace.sizes[tensor]
        whole = self.out.alloc(size, Role.GRADIENT, place)
        is_away = self.shares.offload is not Offload.NONE
        self.out.sizes[tensor] = 0 if is_away else -(-size // self.shares.group)
        self.out.keep(event)
        self.out.free(whole, place)

    def stepped(self, nbytes: int) -> int:
        """Return the bytes of what the optimizer makes where the trace has *nbytes*."""
        if self.shares.offload is not Offload.NONE:
            return 0
        width = FP32 if self.shares.master else self.shares.traced
        return -(-nbytes * width // self.shares.traced // self.shares.group)
