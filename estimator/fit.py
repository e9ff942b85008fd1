"""What would make a job fit a card, each answer found by estimating it.

    JobSpec, Devices -> Fits

The largest batch comes from a search: two traces give every batch (`batching.py`), each probe
is lowered and replayed under the card's budget, and the answer is estimated once more, as the
webhook would.
Other knobs are tried one at a time.
Never proposes a change it has not estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimator.answer import device_facts
from estimator.batching import BatchFamily, family_of
from estimator.calibration import Bound, bounded, handed_to_next
from estimator.cudnn import PlanSource
from estimator.device import Device
from estimator.errors import EstimatorError, SpecError
from estimator.frontends import Frontend, load
from estimator.frontends.recorded import another_job
from estimator.need import enough_of, lower_for
from estimator.pipeline import has_taken_release, method_of, overheads_for
from estimator.result import Fit, Knob
from estimator.sharding import Position, RankFrontend, positions_of, ranks_of
from estimator.spec import (
    CheckpointMode,
    Framework,
    JobPhase,
    JobSpec,
    ModelSource,
    Precision,
    Strategy,
    parse_spec,
)
from estimator.spec.vocabulary import Implementation
from estimator.trace import Trace
from estimator.traits import traits_of

MAX_BATCH = 1 << 16
SHORTEST_LENGTH = 128
"""Sequences are halved down to this."""
MOST_GPUS = 64
"""Data-parallel ranks that are tried at most."""
STAGES = {Strategy.ZERO1: 1, Strategy.ZERO2: 2, Strategy.ZERO3: 3}
SHARING = (Strategy.FSDP, *STAGES)


def fit(
    spec: JobSpec,
    devices: Sequence[Device],
    plans: PlanSource | None = None,
    *,
    frontend: Frontend | None = None,
) -> tuple[Fit, ...]:
    """Return what would make *spec* fit each of *devices*, in order.

    Convolutions are asked of *plans* where there is one. *frontend* traces the job at other
    batches, by default that of its framework.

    Raises:
        EstimatorError: if the job itself cannot be estimated, or is a recorded one.
    """
    if spec.model.source is ModelSource.TRACE:
        raise another_job()
    tracer = load(spec.framework)
    search = Search(
        spec=spec,
        frontend=RankFrontend(tracer),
        at_batches=RankFrontend(frontend or tracer),
        plans=plans,
    )
    return tuple(search.on(device) for device in devices)


@dataclass(slots=True, kw_only=True)
class Search:
    """The knobs of one spec."""

    spec: JobSpec
    frontend: Frontend
    plans: PlanSource | None = None
    at_batches: Frontend | None = None
    """Traces the same job at other batches; None: *frontend* does."""

    def on(self, device: Device) -> Fit:
        """Return what fits *device*; nothing is searched on a card of unknown capacity."""
        if device.budget_bytes is None:
            return Fit(device=device_facts(device))
        knobs: list[Knob] = []
        searched = ["input.batchSize"]
        batch = self.largest_batch(device)
        found: dict[str, Knob] = {}
        for path, value, text in self.knobs(device):
            searched.append(path)
            if path not in found and self.fits_with(path, value, device):
                found[path] = Knob(path=path, value=value, text=text)
        knobs += found.values()
        return Fit(
            device=device_facts(device),
            largest_batch=batch,
            knobs=tuple(knobs),
            searched=tuple(dict.fromkeys(searched)),
        )

    def fits_with(self, path: str, value: Any, device: Device) -> bool:
        """Return whether the job with one change fits; a job that cannot be does not."""
        try:
            return self.fits(_changed(self.spec, path, value), device)
        except SpecError:
            return False

    def largest_batch(self, device: Device) -> int | None:
        """Return the largest batch that fits *device*, or None if not even one does."""
        family = self.family(device)
        probe = (lambda batch: self.holds(family, device, batch)) if family else None
        found = _largest(probe or (lambda batch: self.fits_at(batch, device)))
        # A probe is one replay; the answer must be the one the job gets when it is sent again.
        while found and not self.fits_at(found, device):
            found -= max(1, found // 32)
        return found or None

    def fits_at(self, batch: int, device: Device) -> bool:
        """Return whether the job at *batch*, found as the webhook finds it, fits *device*."""
        return self.fits(self.with_batch(batch), device, self.at_batches)

    def with_batch(self, batch: int) -> JobSpec:
        """Return the job at *batch*."""
        return _changed(self.spec, "input.batchSize", batch)

    def family(self, device: Device) -> BatchFamily | None:
        """Return the job at any batch, or None if two batches differ in more than the batch.

        A batch of one takes other paths (broadcasts, squeezed axes): it is never one of the two.
        """
        small, large = 4, 8
        traits = traits_of(device, self.spec.framework)
        frontend = self.at_batches or self.frontend
        traces = [
            frontend.trace_job(self.with_batch(batch), traits=traits) for batch in (small, large)
        ]
        return family_of(*traces, small_batch=small, large_batch=large)

    def holds(self, family: BatchFamily, device: Device, batch: int) -> bool:
        """Return whether the family's job at *batch* fits *device*."""
        trace = family.at(batch)
        lowered = lower_for(trace, device, self.spec.runtime, self.plans)
        room = _room(self.spec, device, trace, unasked=lowered.is_bounded)
        return room > 0 and lowered.completes(capacity=room)

    def fits(self, spec: JobSpec, device: Device, tracer: Frontend | None = None) -> bool:
        """Return whether every rank of *spec*, found as the webhook finds it, fits *device*.

        *tracer* traces it, by default that of all jobs.
        """
        frontend = tracer or self.frontend
        return all(self.rank_fits(spec, each, device, frontend) for each in positions_of(spec))

    def rank_fits(
        self, spec: JobSpec, position: Position, device: Device, frontend: Frontend
    ) -> bool:
        """Return whether the rank of *spec* at *position*, traced by *frontend*, fits *device*."""
        if isinstance(frontend, RankFrontend):
            frontend = RankFrontend(frontend.inner, position)
        try:
            trace = frontend.trace_job(spec, traits=traits_of(device, spec.framework))
        except EstimatorError:
            return False
        lowered = lower_for(trace, device, spec.runtime, self.plans)
        room = _room(spec, device, trace, unasked=lowered.is_bounded)
        return enough_of(lowered) <= room

    def knobs(self, device: Device) -> Iterator[tuple[str, Any, str]]:
        """Yield the single changes worth trying: path, value, words."""
        training = self.spec.training
        if self.spec.phase is not JobPhase.TRAIN:
            return
        if (
            self.spec.model.source is ModelSource.HUGGINGFACE
            and training.gradient_checkpointing.mode is CheckpointMode.NONE
        ):
            yield "training.gradientCheckpointing", "full", "gradient checkpointing"
        if training.precision in (Precision.FP32, Precision.TF32):
            half = Precision.AMP_BF16 if traits_of(device).native_bf16 else Precision.AMP_FP16
            yield "training.precision", half.value, f"{half.value} mixed precision"
        yield from self.tuning_knobs()

    def tuning_knobs(self) -> Iterator[tuple[str, Any, str]]:
        """Yield what makes a transformer's job smaller: of one path, the least change first."""
        spec = self.spec
        if spec.model.source is not ModelSource.HUGGINGFACE:
            return
        if spec.framework is not Framework.PYTORCH:
            return
        if spec.adapter is None:
            yield "adapter", {"type": "lora", "rank": 16}, "LoRA of rank 16"
        length = spec.input.sequence_length or 0
        while length >= 2 * SHORTEST_LENGTH:
            length //= 2
            yield "input.sequenceLength", length, f"sequence length {length}"
        yield from self.sharing_knobs()

    def sharing_knobs(self) -> Iterator[tuple[str, Any, str]]:
        """Yield ways to share the state: among the ranks there are, then among more."""
        parallel = self.spec.parallelism
        ranks = parallel.data_parallel
        is_deepspeed = parallel.implementation is Implementation.DEEPSPEED
        stages = tuple(
            stage for stage in STAGES if STAGES.get(parallel.strategy, 0) < STAGES[stage]
        )
        if ranks > 1 and (is_deepspeed or parallel.strategy in STAGES):
            for stage in stages:
                yield "parallelism.strategy", stage.value, f"ZeRO stage {STAGES[stage]}"
        elif ranks > 1 and parallel.strategy in (Strategy.NONE, Strategy.DDP):
            yield "parallelism.strategy", Strategy.FSDP.value, f"FSDP over the {ranks} GPUs"
        strategy = parallel.strategy if parallel.strategy in SHARING else Strategy.FSDP
        document = self.spec.document().get("parallelism", {})
        others = max(1, ranks_of(parallel) // max(1, ranks))
        while ranks < MOST_GPUS:
            ranks *= 2
            changed = {**document, "strategy": strategy.value, "dataParallel": ranks}
            changed.pop("worldSize", None)
            name = strategy.value.upper().replace("ZERO", "ZeRO-")
            yield "parallelism", changed, f"{name} over {ranks * others} GPUs"


def _largest(fits: Callable[[int], bool]) -> int:
    """Return the largest batch that fits, 0 if none does: doubling, then bisection."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while high <= MAX_BATCH and fits(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _room(spec: JobSpec, device: Device, trace: Trace, *, unasked: bool) -> int:
    """Return the segments a job may take on *device* so that its `enough` is within budget."""
    overheads = overheads_for(spec, device, trace)
    loaders = spec.runtime.data_loader_cuda_workers * overheads.context.high
    beside = overheads.total.high + spec.runtime.extra_bytes + loaders
    room = (device.budget_bytes or 0) - beside - handed_to_next(spec, trace)
    # The inverse of the margin of `enough`, rounded down: bounded(room) is within the budget.
    margin = bounded(
        1_000_000,
        method_of(spec, trace),
        Bound.ENOUGH,
        unasked=unasked,
        unstated=has_taken_release(trace),
    )
    return room * 1_000_000 // margin


def _changed(spec: JobSpec, path: str, value: Any) -> JobSpec:
    """Return *spec* with the value at *path* replaced."""
    document = spec.document()
    part: dict[str, Any] = document
    *parents, last = path.split(".")
    for parent in parents:
        child = part.get(parent)
        part[parent] = dict(child) if isinstance(child, Mapping) else {}
        part = part[parent]
    part[last] = value
    return parse_spec(document)
