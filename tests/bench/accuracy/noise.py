"""How much of an error is the reading's own: the noise floor of a group.

    Cases of one group -> Noise

Where a model was measured at three batches or more, a reading between two others is held against
the straight line through its neighbours. Memory grows with the batch in a straight line but for
the pages of the allocator and the libraries' choices, so what is left is what no smooth model of
the run can explain. It holds the noise of three readings, up to a factor of 1.2 on that of one.
Where too few models were, the rounding of the printed figure is all that is known: a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import orjson

from tests.bench.accuracy.cases import Case
from tests.bench.accuracy.groups import quantile

ENOUGH_READINGS = 12
INTERPOLATED = "neighbouring batches"
ROUNDED = "rounding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The floor of a group: relative, the median and the 90th percentile over `num_readings`."""

    method: str
    num_readings: int
    median: float
    p90: float


def noise_floor(cases: Sequence[Case]) -> Noise:
    """Return the noise floor of *cases*, one group in one metric and view."""
    method, found = INTERPOLATED, sorted(residuals(cases))
    if len(found) < ENOUGH_READINGS:
        method, found = ROUNDED, sorted(case.reading.tolerance for case in cases)
    return Noise(
        method=method,
        num_readings=len(found),
        median=median(found),
        p90=quantile(found, 0.9),
    )


def residuals(cases: Sequence[Case]) -> list[float]:
    """Return how far each reading is from the line through the same model's next batches."""
    found = []
    for readings in _by_model(cases):
        triples = zip(pairwise(readings), pairwise(readings[1:]), strict=False)
        for ((low, below), (batch, measured)), (_, (high, above)) in triples:
            expected = below + (above - below) * (batch - low) / (high - low)
            found.append(abs(expected / measured - 1))
    return found


def _by_model(cases: Sequence[Case]) -> list[list[tuple[int, int]]]:
    """Return batch and bytes, in order of the batch, of each job that differs in its batch only."""
    models: dict[bytes, dict[int, int]] = {}
    for case in cases:
        entries = {key: value for key, value in case.spec["input"].items() if key != "batchSize"}
        spec = {**case.spec, "input": entries}
        key = orjson.dumps([spec, case.gpu], option=orjson.OPT_SORT_KEYS)
        models.setdefault(key, {})[case.spec["input"]["batchSize"]] = case.reading.nbytes
    return [sorted(batches.items()) for batches in models.values()]
