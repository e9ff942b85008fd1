"""What would make a job fit a card, each answer found by estimating it.

    JobSpec, Devices -> Fits

The largest batch comes from a search: two traces give every batch (`batching.py`), each probe
is lowered and replayed under the card's budget, and the answer is estimated once more for real.
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
from estimator.errors import EstimatorError
from estimator.frontends import Frontend, load
from estimator.frontends.recorded import another_job
from estimator.need import enough_of, lower_for
from estimator.pipeline import has_taken_release, method_of, overheads_for
from estimator.result import Fit, Knob
from estimator.spec import CheckpointMode, JobPhase, JobSpec, ModelSource, Precision, parse_spec
from estimator.trace import Trace
from estimator.traits import traits_of

MAX_BATCH = 1 << 16


def fit(
    spec: JobSpec, devices: Sequence[Device], plans: PlanSource | None = None
) -> tuple[Fit, ...]:
    """Return what would make *spec* fit each of *devices*, in order.

    Convolutions are asked of *plans* where there is one.

    Raises:
        EstimatorError: if the job itself cannot be estimated, or is a recorded one.
    """
    if spec.model.source is ModelSource.TRACE:
        raise another_job()
    search = Search(spec=spec, frontend=load(spec.framework), plans=plans)
    return tuple(search.on(device) for device in devices)


@dataclass(slots=True, kw_only=True)
class Search:
    """The knobs of one spec."""

    spec: JobSpec
    frontend: Frontend
    plans: PlanSource | None = None

    def on(self, device: Device) -> Fit:
        """Return what fits *device*; nothing is searched on a card of unknown capacity."""
        if device.budget_bytes is None:
            return Fit(device=device_facts(device))
        knobs: list[Knob] = []
        searched = ["input.batchSize"]
        batch = self.largest_batch(device)
        for path, value, text in self.knobs(device):
            searched.append(path)
            if self.fits(_changed(self.spec, path, value), device):
                knobs.append(Knob(path=path, value=value, text=text))
        return Fit(
            device=device_facts(device),
            largest_batch=batch,
            knobs=tuple(knobs),
            searched=tuple(searched),
        )

    def largest_batch(self, device: Device) -> int | None:
        """Return the largest batch that fits *device*, or None if not even one does."""
        family = self.family(device)
        probe = (lambda batch: self.holds(family, device, batch)) if family else None
        found = _largest(probe or (lambda batch: self.fits(self.with_batch(batch), device)))
        # A probe is one replay; the answer must be the one the job gets when it is sent again.
        while found and not self.fits(self.with_batch(found), device):
            found -= max(1, found // 32)
        return found or None

    def with_batch(self, batch: int) -> JobSpec:
        """Return the job at *batch*."""
        return _changed(self.spec, "input.batchSize", batch)

    def family(self, device: Device) -> BatchFamily | None:
        """Return the job at any batch, or None if two batches differ in more than the batch.

        A batch of one takes other paths (broadcasts, squeezed axes): it is never one of the two.
        """
        small, large = 4, 8
        traits = traits_of(device)
        traces = [
            self.frontend.trace_job(self.with_batch(batch), traits=traits)
            for batch in (small, large)
        ]
        return family_of(*traces, small_batch=small, large_batch=large)

    def holds(self, family: BatchFamily, device: Device, batch: int) -> bool:
        """Return whether the family's job at *batch* fits *device*."""
        trace = family.at(batch)
        lowered = lower_for(trace, device, self.spec.runtime, self.plans)
        room = _room(self.spec, device, trace, unasked=lowered.is_bounded)
        return room > 0 and lowered.completes(capacity=room)

    def fits(self, spec: JobSpec, device: Device) -> bool:
        """Return whether *spec*, found as the webhook finds it, fits *device*."""
        try:
            trace = self.frontend.trace_job(spec, traits=traits_of(device))
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
