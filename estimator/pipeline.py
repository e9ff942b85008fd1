"""The whole estimate as one readable chain.

    JobSpec, Devices -> Trace -> Program -> Replay -> Estimates

Runs in a worker. A spec is traced once for all cards with the same traits, and replayed once
for all cards that lower it to the same program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from estimator.answer import Ends, answer, worst
from estimator.calibration import Bound, bounded, handed_to_next, last_batch
from estimator.cudnn import PlanSource
from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.frontends import Frontend, load
from estimator.frugal import frugal_spec
from estimator.kernels import uses_cudnn
from estimator.need import Lowered, Need, lower_for, need_of
from estimator.overheads import Overheads, overheads_of
from estimator.replay import Replay, replay
from estimator.result import Estimate
from estimator.sharding import RankFrontend, communicators_of, positions_of, ranks_of
from estimator.spec import JobSpec
from estimator.trace import AT_MOST, OTHER_CARD, Method, Role, Trace
from estimator.traits import Traits, traits_of


def estimate(
    spec: JobSpec,
    devices: Sequence[Device],
    plans: PlanSource | None = None,
    *,
    frontend: Frontend | None = None,
) -> tuple[Estimate, ...]:
    """Return one estimate of *spec* for each of *devices*, in order.

    Convolutions are asked of *plans* where there is one. *frontend* traces it, by default that
    of its framework.

    Raises:
        EstimatorError: of the kind that says why there is none.
    """
    tracer = frontend or load(spec.framework)
    positions = positions_of(spec)
    jobs = [
        Job(spec=spec, frontend=RankFrontend(tracer, position), plans=plans)
        for position in positions
    ]
    return tuple(worst([job.on(device) for job in jobs], positions) for device in devices)


def trace_all(spec: JobSpec, devices: Sequence[Device], *, frontend: Frontend) -> None:
    """Trace *spec*, and the cheapest job it may be, with *frontend* as `estimate` does.

    Raises:
        EstimatorError: of the kind that says why there is no trace.
    """
    for position in positions_of(spec):
        job = Job(spec=spec, frontend=RankFrontend(frontend, position))
        for device in devices:
            job.trace(device)
            if (cheapest := job.cheapest(device)) is not None:
                cheapest.trace(device)


@dataclass(slots=True, kw_only=True)
class Job:
    """One spec on many cards; remembers its traces and needs."""

    spec: JobSpec
    frontend: Frontend
    plans: PlanSource | None = None
    _traces: dict[Traits, Trace] = field(default_factory=dict)
    _frugal_traces: dict[Traits, Trace] = field(default_factory=dict)
    _needs: dict[tuple[bytes, ...], Need] = field(default_factory=dict)

    def on(self, device: Device) -> Estimate:
        """Return the estimate for *device*."""
        # The clock only says how long it took: no figure depends on it.
        started = time.monotonic()
        trace = self.trace(device)
        lowered = lower_for(trace, device, self.spec.runtime, self.plans)
        need = self.need(lowered)
        least = self.least(need, device)
        overheads = overheads_for(self.spec, device, trace)
        run = run_on(lowered, need, device, self.spec, overheads)
        method = method_of(self.spec, trace)
        moved = partial(
            bounded,
            method=method,
            unasked=lowered.is_bounded,
            unstated=has_taken_release(trace),
        )
        ends = ends_of(need, run, moved, least=least)
        return answer(
            spec=self.spec,
            device=device,
            trace=trace,
            lowered=lowered,
            overheads=overheads,
            ends=with_last_batch(ends, self.spec, trace),
            allocator_limit=allowed_bytes(lowered, device, self.spec, overheads),
            preallocated=preallocated_bytes(lowered, device, overheads),
            method=method,
            elapsed_seconds=time.monotonic() - started,
        )

    def trace(self, device: Device) -> Trace:
        """Return the job's trace on cards with the traits of *device*."""
        traits = traits_of(device, self.spec.framework)
        if traits not in self._traces:
            self._traces[traits] = self.frontend.trace_job(self.spec, traits=traits)
        return self._traces[traits]

    def least(self, need: Need, device: Device) -> int:
        """Return the least the job may need: that of the cheapest job the spec may be.

        Where that job cannot be traced, or sizes were taken at their most, only the weights are
        certain.
        """
        if AT_MOST in self.trace(device).facts:
            return min(need.least, parameter_bytes(self.trace(device)))
        cheapest = self.cheapest(device)
        if cheapest is None:
            return need.least
        try:
            trace = cheapest.trace(device)
        except EstimatorError:
            return min(need.least, parameter_bytes(self.trace(device)))
        runtime = cheapest.spec.runtime
        lowered = lower_for(trace, device, runtime, self.plans, has_most=False)
        return min(need.least, self.need(lowered).least)

    def cheapest(self, device: Device) -> Job | None:
        """Return the cheapest job the spec may be, None if that is the spec itself."""
        taken = {note.path for note in self.trace(device).assumptions}
        spec = frugal_spec(self.spec, taken=taken)
        if spec is None:
            return None
        traces = self._frugal_traces
        return Job(spec=spec, frontend=self.frontend, plans=self.plans, _traces=traces)

    def need(self, lowered: Lowered) -> Need:
        """Return the need of *lowered*, computed once for equal programs."""
        key = lowered.key
        if key not in self._needs:
            self._needs[key] = need_of(lowered)
        return self._needs[key]


def parameter_bytes(trace: Trace) -> int:
    """Return the bytes of the weights in *trace*."""
    pairs = zip(trace.sizes, trace.roles, strict=True)
    return sum(size for size, role in pairs if role == Role.PARAMETER)


def overheads_for(spec: JobSpec, device: Device, trace: Trace) -> Overheads:
    """Return what one process of *spec* holds on *device* beside its allocator."""
    parallel = spec.parallelism
    return overheads_of(
        device,
        framework=spec.framework.value,
        framework_version=spec.framework_version,
        num_ranks=ranks_of(parallel),
        num_communicators=communicators_of(parallel),
        interconnect=parallel.interconnect.value,
        uses_cudnn=uses_cudnn(trace),
        environment=spec.runtime.env,
    )


def run_on(
    lowered: Lowered, need: Need, device: Device, spec: JobSpec, overheads: Overheads
) -> Replay:
    """Return the expected run on *device*: capped if the card is too small for a free run.

    A run that dies under the cap is described as it would be without one.
    """
    capacity = capacity_bytes(device, overheads)
    allowed = allowed_bytes(lowered, device, spec, overheads)
    limits = [limit for limit in (capacity, allowed) if limit is not None]
    if not limits or need.free.reserved <= min(limits):
        return need.free
    capped = replay(lowered.program, lowered.allocator(capacity=capacity, allowed=allowed))
    return capped if capped.completed else need.free


def capacity_bytes(device: Device, overheads: Overheads) -> int | None:
    """Return what *device* can give to segments beside *overheads*, None if nobody knows."""
    if device.usable_bytes is None:
        return None
    return max(0, device.usable_bytes - overheads.total.expected)


def allowed_bytes(
    lowered: Lowered, device: Device, spec: JobSpec, overheads: Overheads
) -> int | None:
    """Return what the job lets its own allocator hold, or None."""
    limits = [spec.runtime.allocator_cap_bytes] if spec.runtime.allocator_cap_bytes else []
    if device.usable_bytes is not None:
        own = lowered.policy.limit(device.usable_bytes, beside=overheads.total.expected)
        limits += [own] if own is not None else []
    return min(limits, default=None)


def preallocated_bytes(lowered: Lowered, device: Device, overheads: Overheads) -> int | None:
    """Return what NVML shows of a job whose allocator takes its memory at the start, or None."""
    beside = overheads.total.expected
    if device.usable_bytes is None:
        return None
    pool = lowered.policy.preallocated(device.usable_bytes, beside=beside)
    return None if pool is None else pool + beside


def method_of(spec: JobSpec, trace: Trace) -> Method:
    """Return how figures of *spec* are found: what `torch.compile` makes is traced as eager code.

    It fuses and reuses buffers in ways the trace does not show, and a trace recorded
    for another kind of card has other kernels: their interval is that of a formula.
    """
    is_unlike = spec.training.compile.enabled or OTHER_CARD in trace.facts
    return Method.FORMULA if trace.method is Method.TRACE and is_unlike else trace.method


def has_taken_release(trace: Trace) -> bool:
    """Return whether the release of the model's library was taken, not told."""
    return any(note.path == "runtime.libraries.transformers" for note in trace.assumptions)


def ends_of(need: Need, run: Replay, moved: Callable[..., int], *, least: int) -> Ends:
    """Return the interval around the need and the run; *least* may be another job's need.

    `most` is the larger of a margin over the run, and the run with every uncertain workspace at
    its high end. *moved* moves bytes outwards by the margin of a `bound`.
    """
    return Ends(
        run=run,
        least_reserved=min(moved(least, bound=Bound.LEAST), run.reserved),
        enough_reserved=moved(need.enough, bound=Bound.ENOUGH),
        most_allocated=max(moved(run.allocated, bound=Bound.MOST_ALLOCATED), need.most.allocated),
        most_reserved=max(
            moved(max(run.reserved, need.enough), bound=Bound.MOST_RESERVED), need.most.reserved
        ),
    )


def with_last_batch(ends: Ends, spec: JobSpec, trace: Trace) -> Ends:
    """Return *ends* with room for the smaller batch an epoch of *spec* may end with."""
    return replace(
        ends,
        enough_reserved=ends.enough_reserved + handed_to_next(spec, trace),
        last_batch=last_batch(spec, trace, ends.run.reserved),
    )
