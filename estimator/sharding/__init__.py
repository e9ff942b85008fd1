"""One rank of a parallel job, from a trace of what one rank computes.

    Frontend -> Frontend; JobSpec -> Trace of the rank

The frontend traces what the rank computes (its layers, its heads, its piece of the sequence, in
its precision: `pieces.py`); what the ranks of a data-parallel group share is written into that
trace (`gathered.py`, `partitioned.py`).
Not modelled: memory of the host, what a library does before the first step.
"""

from __future__ import annotations

from dataclasses import replace

from estimator.frontends import Frontend
from estimator.layering import config_of, key_of, layered_trace, note_of
from estimator.notes import Assumption, AssumptionCode
from estimator.sharding.exchanged import with_buffer, with_ring, with_shorter_norms
from estimator.sharding.flights import held_at_once, in_flight
from estimator.sharding.gathered import gathered
from estimator.sharding.groups import communicators_of, ranks_of
from estimator.sharding.holding import PERSISTENT_ELEMENTS, Gathering, Way
from estimator.sharding.notes import unknowns_of
from estimator.sharding.partitioned import partitioned
from estimator.sharding.pieces import HEADS, HIDDEN, KEYS, Position, piece_of, positions_of
from estimator.sharding.shares import (
    Shares,
    is_second_fsdp,
    lets_go_of_outputs,
    require_group,
    shares_of,
)
from estimator.sharding.units import units_of
from estimator.spec import Framework, JobSpec, ModelSource, Precision, Strategy
from estimator.spec.vocabulary import Implementation, Offload
from estimator.trace import Trace
from estimator.traits import Traits

FIRST = Position()
WIDE = (Precision.FP32, Precision.TF32, Precision.AMP_BF16, Precision.AMP_FP16)
"""Precisions whose residual stream is in 32 bits."""


class RankFrontend:
    """A frontend that traces one rank of a job."""

    def __init__(
        self, inner: Frontend, position: Position = FIRST, *, is_exact: bool = False
    ) -> None:
        """*is_exact* traces every layer, however many there are: slower, and the same figures."""
        self.FRAMEWORK = inner.FRAMEWORK
        self.inner = inner
        self.position = position
        self.is_exact = is_exact

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
        """Return the trace of this rank of *spec* on any card with *traits*.

        Raises:
            SpecError: for degrees that do not divide what they are to divide.
            UnsupportedJobError: for ways of parallel training that are not modelled.
        """
        if spec.framework is not Framework.PYTORCH or spec.model.source is ModelSource.TRACE:
            # Others lay arrays on cards themselves, and a recording is of one rank already.
            return self.inner.trace_job(spec, traits=traits)
        require_group(spec)
        piece = piece_of(spec, self.position)
        if self.is_exact:
            trace = self.inner.trace_job(piece, traits=traits)
        else:
            trace = layered_trace(self.inner, piece, traits=traits)
        if piece.model.config and not spec.model.config:
            trace = replace(trace, assumptions=(*note_of(spec), *trace.assumptions))
        trace = exchanged(trace, spec, piece)
        trace = in_flight(trace, held_at_once(spec.parallelism, self.position.stage))
        trace = shared(trace, spec)
        return replace(
            trace,
            assumptions=(*trace.assumptions, *_assumptions(spec)),
            unknowns=(*trace.unknowns, *unknowns_of(spec)),
        )


def _assumptions(spec: JobSpec) -> tuple[Assumption, ...]:
    """Return which FSDP was taken, and what its trainer does, where the spec does not say."""
    parallel = spec.parallelism
    found: list[Assumption] = []
    if parallel.strategy is Strategy.FSDP and parallel.implementation is None:
        taken = Implementation.FSDP2 if is_second_fsdp(spec) else Implementation.FSDP1
        reason = "absent: fully_shard since PyTorch 2.6, FullyShardedDataParallel before"
        found.append(_default("parallelism.implementation", taken.value, reason))
    if lets_go_of_outputs(spec):
        reason = "absent: trainers with fully_shard let go of the outputs before backward"
        found.append(_default("training.keepOutputs", "false", reason))
    return tuple(found)


def _default(path: str, value: str, reason: str) -> Assumption:
    return Assumption(code=AssumptionCode.DEFAULT, path=path, value=value, reason=reason)


def exchanged(trace: Trace, spec: JobSpec, piece: JobSpec) -> Trace:
    """Return *trace* with what this rank exchanges with the others of its replica."""
    parallel, config = spec.parallelism, config_of(piece)
    hidden, heads = key_of(config, HIDDEN), key_of(config, HEADS)
    length = piece.input.sequence_length
    if hidden is None or heads is None or length is None:
        return trace
    width = 4 if piece.training.precision in WIDE else 2
    rows = piece.input.batch_size * length
    stream = rows * config[hidden] * width
    if parallel.sequence_parallel and parallel.tensor_parallel > 1:
        trace = with_shorter_norms(trace, parallel.tensor_parallel, stream)
    if parallel.context_parallel > 1:
        keys = config[key_of(config, KEYS) or heads]
        size = config.get("head_dim") or config[hidden] // config[heads]
        trace = with_ring(trace, 2 * rows * keys * size * width)
    if parallel.pipeline_parallel > 1:
        trace = with_buffer(trace, stream)
    return trace


def shared(trace: Trace, spec: JobSpec) -> Trace:
    """Return *trace* with the state of *spec* shared among the ranks of its group."""
    shares = shares_of(spec)
    parallel = spec.parallelism
    if shares is None or _is_alone(shares):
        return trace
    if shares.stage < 3:
        return partitioned(trace, shares, parallel.zero)
    if parallel.strategy is Strategy.ZERO3:
        way = Way.ZERO3
    else:
        way = Way.FSDP2 if is_second_fsdp(spec) else Way.FSDP1
    how = Gathering(
        way=way,
        reshards=parallel.reshard_after_forward,
        zero=parallel.zero,
        accumulates=spec.training.gradient_accumulation_steps > 1,
    )
    units = units_of(
        trace,
        parallel.wrap,
        persistent_bytes=PERSISTENT_ELEMENTS * shares.traced,
        traced=shares.traced,
    )
    return gathered(trace, units, shares, how)


def _is_alone(shares: Shares) -> bool:
    """Return whether a group of one does what a job without it would."""
    is_kept = shares.weight == shares.traced and not shares.master and not shares.main_gradients
    return shares.group == 1 and is_kept and shares.offload is Offload.NONE


__all__ = [
    "Position",
    "RankFrontend",
    "communicators_of",
    "positions_of",
    "ranks_of",
    "shared",
]
