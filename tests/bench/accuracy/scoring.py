"""One case against its estimate.

    Case, Answer -> Score

A reading is compared with the figure of its own metric and nothing else: reserved exceeds
allocated by 5-40 % on the same run. A reading of a whole card has the driver's reservation in it
where the driver of that time counted it as used. `runtime.extraBytes` are in `device` alone, as
docs/contracts.md has them, whatever allocator a run had them in. What a meter's zero already held
is missing in the reading; it is named beside it, and moves no figure that is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.catalog.reservation import counts_reservation
from estimator.catalog.stacks import NEWEST, stack_of
from tests.bench.accuracy.answers import Answer, Sizes
from tests.bench.accuracy.cases import Case, Metric, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """An estimate beside the reading, in the reading's metric and view. Sizes are bytes."""

    measured: int
    estimated: int
    least: int | None
    """Absent for `allocated`: a `least` has none."""
    most: int
    tolerance: float
    in_zero: int = 0
    """What the zero of the reading's meter already held, by the estimate's own breakdown."""

    @property
    def error_of_whole(self) -> float:
        """Return the signed error against the reading with what the meter's zero held."""
        return self.estimated / (self.measured + self.in_zero) - 1

    @property
    def signed_error(self) -> float:
        """Return estimated over measured, less one: negative is an under-estimate."""
        return self.estimated / self.measured - 1

    @property
    def is_under_least(self) -> bool:
        """Return whether the reading is below `least` by more than its rounding."""
        return self.least is not None and self.measured * (1 + self.tolerance) < self.least

    @property
    def is_over_most(self) -> bool:
        """Return whether the reading is above `most` by more than its rounding."""
        return self.measured * (1 - self.tolerance) > self.most

    @property
    def is_inside(self) -> bool:
        """Return whether the reading lies between `least` and `most`."""
        return not self.is_under_least and not self.is_over_most

    @property
    def width(self) -> float | None:
        """Return most over least; none where there is no least."""
        return None if self.least is None else self.most / self.least


def score(case: Case, answer: Answer) -> Score:
    """Return *answer* scored against the reading of *case*."""
    metric = case.reading.metric
    added = answer.reservation_bytes if counts_as_used(case) else 0
    estimated, most = _figure(answer.peak, metric), _figure(answer.most, metric)
    assert estimated is not None
    assert most is not None
    least = _figure(answer.least, metric)
    return Score(
        measured=case.reading.nbytes,
        estimated=estimated + added,
        least=None if least is None else least + added,
        most=most + added,
        tolerance=case.reading.tolerance,
        in_zero=sum(answer.breakdown[part] for part in case.reading.lacks),
    )


def counts_as_used(case: Case) -> bool:
    """Return whether the reading has the driver's reservation in it.

    Only a view of the whole card can. The driver is the spec's, else one of the time of its CUDA
    toolkit. The readings of other frameworks than PyTorch are all older than driver 510.
    """
    if case.reading.view is not View.CARD:
        return False
    driver = case.spec.get("runtime", {}).get("driver")
    if driver is None and case.spec.get("framework") != "pytorch":
        return False
    stack = stack_of(case.spec.get("frameworkVersion")) or NEWEST
    return bool(counts_reservation(driver, cuda=stack.cuda))


def _figure(sizes: Sizes, metric: Metric) -> int | None:
    match metric:
        case Metric.ALLOCATED | Metric.ACTIVE:
            return sizes.allocated
        case Metric.RESERVED:
            return sizes.reserved
        case Metric.DEVICE:
            return sizes.device
