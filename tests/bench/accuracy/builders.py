"""Build the values that the tests of this package are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.units import GIB
from tests.bench.accuracy.answers import Answer, Sizes
from tests.bench.accuracy.cases import Case, End, Metric, Outcome, Quality, Reading, View
from tests.bench.accuracy.groups import Scored
from tests.bench.accuracy.scoring import score

NO_PARTS = dict.fromkeys(
    (
        *("parameters", "gradients", "optimizer", "activations", "inputs", "temporary"),
        *("workspace", "communication", "cached", "context", "libraries", "other"),
    ),
    0,
)


def case_of(
    name: str = "group/case",
    *,
    nbytes: int = 100,
    metric: Metric = Metric.DEVICE,
    view: View | None = None,
    tolerance: float = 0.0,
    version: str | None = "2.4.1+cu121",
    batch: int = 8,
    model: str = "resnet50",
    spec: Mapping[str, Any] | None = None,
    **more: Any,
) -> Case:
    """Return a measured case of the group its id begins with."""
    job = {
        "framework": "pytorch",
        "frameworkVersion": version,
        "model": {"source": "timm", "name": model},
        "input": {"batchSize": batch},
    }
    group, _, _ = name.partition("/")
    fields: dict[str, Any] = {"quality": Quality.EXACT, "gpu": "a100-sxm4-40gb", **more}
    return Case(
        id=name,
        group=group,
        spec={**job, **(spec or {})},
        reading=Reading(metric=metric, view=view, nbytes=nbytes, tolerance=tolerance),
        **fields,
    )


def answer_of(
    *,
    peak: tuple[int, int, int] = (80, 90, 100),
    least: tuple[int, int] = (70, 80),
    most: tuple[int, int, int] = (90, 110, 120),
    reservation: int = 7,
    usable: int | None = 40 * GIB,
    seconds: float = 0.0,
    assumed: tuple[str, ...] = (),
    unknown: tuple[str, ...] = (),
    method: str = "trace",
    **parts: int,
) -> Answer:
    """Return an estimate. Sizes are allocated, reserved, device; *least* has the last two."""
    return Answer(
        least=Sizes(reserved=least[0], device=least[1]),
        enough=Sizes(device=peak[2]),
        peak=_sizes(peak),
        most=_sizes(most),
        reservation_bytes=reservation,
        usable_bytes=usable,
        breakdown={**NO_PARTS, **parts},
        method=method,
        assumed=assumed,
        unknown=unknown,
        seconds=seconds,
    )


def scored_of(case: Case, answer: Answer | None = None, *, is_fitted: bool = False) -> Scored:
    """Return *case* scored against *answer*, or without an answer."""
    figures = None if answer is None else score(case, answer)
    return Scored(case=case, score=figures, is_fitted=is_fitted)


def erring(name: str, error: float, **more: Any) -> Scored:
    """Return a case whose estimate is off by *error*, a reading of 1,000 bytes."""
    size = round(1000 * (1 + error))
    answer = answer_of(peak=(size, size, size), least=(500, 500), most=(2000, 2000, 2000))
    return scored_of(case_of(name, nbytes=1000), answer, **more)


def outcome_of(
    name: str = "group/job", *, end: End = End.RAN, cap_bytes: int | None = None
) -> Outcome:
    """Return a job of known outcome."""
    group, _, _ = name.partition("/")
    return Outcome(
        id=name, group=group, spec={}, gpu="a100-sxm4-40gb", end=end, cap_bytes=cap_bytes
    )


def _sizes(values: tuple[int, int, int]) -> Sizes:
    allocated, reserved, device = values
    return Sizes(allocated=allocated, reserved=reserved, device=device)
