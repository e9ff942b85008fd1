"""One job at many batches on many cards, traced twice.

    JobSpec, batches, Devices -> Estimates

Two traces give every batch (`batching.py`); each is then lowered, replayed and answered as one of
its own. A batch of one takes other paths (broadcasts, squeezed axes), and a job whose two traces
differ in more than the batch has no family: those are traced each, as are plans of compilers and
losses that cut the tokens into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from estimator.batching import BatchFamily, exact_family
from estimator.cudnn import PlanSource
from estimator.device import Device
from estimator.frontends import Frontend, load
from estimator.frontends.recorded import another_job
from estimator.pipeline import estimate
from estimator.result import Estimate
from estimator.spec import JobSpec, ModelSource, parse_spec
from estimator.trace import Trace
from estimator.traits import Traits

SMALL, LARGE = 4, 8


def grid(
    spec: JobSpec,
    batches: Sequence[int],
    devices: Sequence[Device],
    plans: PlanSource | None = None,
    *,
    frontend: Frontend | None = None,
) -> tuple[Estimate, ...]:
    """Return the estimates of *spec* at each of *batches* on each of *devices*.

    The first batch on every device comes first, then the second. Convolutions are asked of *plans*
    where there is one. *frontend* traces it, by default that of its framework.

    Raises:
        EstimatorError: of the kind that says why there is none, or if the job is a recorded one.
    """
    if spec.model.source is ModelSource.TRACE:
        raise another_job()
    scaled = Scaled(inner=frontend or load(spec.framework))
    return tuple(
        found
        for batch in batches
        for found in estimate(at_batch(spec, batch), devices, plans, frontend=scaled)
    )


def at_batch(spec: JobSpec, batch: int) -> JobSpec:
    """Return *spec* at *batch*."""
    document = spec.document()
    document["input"]["batchSize"] = batch
    return parse_spec(document)


@dataclass(slots=True, kw_only=True)
class Scaled:
    """A frontend that traces a job at two batches and scales the trace to any other."""

    inner: Frontend
    FRAMEWORK: str = ""
    _families: dict[tuple[str, Traits], BatchFamily | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Be of the framework of *inner*."""
        self.FRAMEWORK = self.inner.FRAMEWORK

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
        """Return the trace of *spec*, from its family where it has one."""
        batch = spec.input.batch_size
        if batch == 1:
            return self.inner.trace_job(spec, traits=traits)
        key = (at_batch(spec, SMALL).digest(), traits)
        if key not in self._families:
            small, large = (
                self.inner.trace_job(at_batch(spec, each), traits=traits) for each in (SMALL, LARGE)
            )
            self._families[key] = exact_family(
                spec, small, large, small_batch=SMALL, large_batch=LARGE
            )
        family = self._families[key]
        return self.inner.trace_job(spec, traits=traits) if family is None else family.at(batch)
