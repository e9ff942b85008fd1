"""What cards really measured, beside what was estimated: kept few, and judged robustly.

    Samples of a Group -> Correction

Namespaces are the voters, not jobs: the correction is a median of their medians, so that one of
three cannot move it beyond what the others say, however many jobs it runs or peaks it makes up.
What the figures rest on: the largest peak of a job that succeeded, on one card, as NVML counts,
÷ `peak.deviceBytes` of its estimate. A job that failed says only how far it came and is no sample.

The numbers below are chosen, not fitted: there is no fleet to fit them on.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MOST_GROUPS = 200
MOST_SAMPLES = 64
"""Of one group; the newest stay."""
MOST_OF_NAMESPACE = 12
"""Of those, from one namespace."""
RATIOS = (0.2, 5.0)
"""A measured peak is within these of its estimate, or it is no measurement of that job."""

SHIFTING_JOBS, SHIFTING_NAMESPACES = 12, 3
"""From how many distinct specs, of how many namespaces, `peak` is shifted and `most` narrowed."""
WIDENING_JOBS, WIDENING_NAMESPACES = 5, 2
"""The same for `most` to be widened: less is needed to be more careful."""
SHIFTS = (0.8, 1.25)
"""How far `peak` is moved at most."""
WIDEST = 1.5
"""How far `most` is raised at most, over what the estimator said."""
DEVIATIONS = 2.0
"""How many robust standard deviations above its middle a peak may still be."""
_MAD_TO_DEVIATION = 1.4826
"""Of a normal distribution: 1 ÷ its 75 % quantile."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Group:
    """Jobs whose errors may be alike."""

    framework: str
    method: str
    product: str
    """The card, as its nodes call it."""
    version: str = ""
    """Of the framework, two parts: `2.6`; empty if the job does not say."""

    @property
    def key(self) -> str:
        """Return the group in one text, as it is kept."""
        return "|".join((self.framework, self.method, self.product, self.version))


def group_of(key: str) -> Group | None:
    """Return the group that `Group.key` wrote; None if it is none."""
    parts = key.split("|")
    if len(parts) != 4 or not all(parts[:3]) or len(key) > 200:
        return None
    framework, method, product, version = parts
    return Group(framework=framework, method=method, product=product, version=version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One job that succeeded."""

    namespace: str
    """A digest of its name."""
    spec: str
    """The start of the spec's digest: the same job again is no further evidence."""
    ratio: float
    """Measured ÷ estimated."""
    day: int
    """Days since 1970: the oldest go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What the samples of a group say of its estimates."""

    jobs: int
    """Distinct specs."""
    namespaces: int
    median: float
    """Of measured ÷ estimated."""
    upper: float
    """Where nearly all of them end, ÷ estimated."""
    shift: float
    """The factor that `peak` is to be multiplied with; 1: there is too little to move it."""

    @property
    def may_widen(self) -> bool:
        """Return whether `most` may be raised."""
        return self.jobs >= WIDENING_JOBS and self.namespaces >= WIDENING_NAMESPACES

    @property
    def may_shift(self) -> bool:
        """Return whether `peak` may be moved, and `most` lowered."""
        return self.jobs >= SHIFTING_JOBS and self.namespaces >= SHIFTING_NAMESPACES


Samples = tuple[Sample, ...]
Residuals = Mapping[Group, Samples]


def namespace_digest(name: str) -> str:
    """Return what stands for a namespace: short, and the same for ever."""
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def with_sample(residuals: Residuals, group: Group, sample: Sample) -> Residuals:
    """Return *residuals* with *sample*, within their bounds.

    The same spec of the same namespace has one sample, the newest. A ratio out of `RATIOS` changes
    nothing, nor does a new group once there are `MOST_GROUPS`.
    """
    if not RATIOS[0] <= sample.ratio <= RATIOS[1]:
        return residuals
    if group not in residuals and len(residuals) >= MOST_GROUPS:
        return residuals
    kept = [
        each
        for each in residuals.get(group, ())
        if (each.namespace, each.spec) != (sample.namespace, sample.spec)
    ]
    kept.append(sample)
    own = [each for each in kept if each.namespace == sample.namespace]
    if len(own) > MOST_OF_NAMESPACE:
        kept.remove(min(own, key=lambda each: each.day))
    return {**residuals, group: tuple(_fair(kept))}


def _fair(samples: list[Sample]) -> list[Sample]:
    """Return at most `MOST_SAMPLES`: of the namespace that has most of them the oldest goes."""
    kept = list(samples)
    while len(kept) > MOST_SAMPLES:
        of = _by_namespace(kept)
        largest = max(of.values(), key=len)
        kept.remove(min(largest, key=lambda each: each.day))
    return kept


def correction_of(samples: Iterable[Sample]) -> Correction | None:
    """Return what *samples* say, None if there are none."""
    by_namespace = _by_namespace(samples)
    if not by_namespace:
        return None
    logs = {name: [math.log(each.ratio) for each in own] for name, own in by_namespace.items()}
    medians = [statistics.median(own) for own in logs.values()]
    middle = statistics.median(medians)
    # Of each namespace how far its jobs lie from the middle of all; of those again the median.
    spread = statistics.median(
        statistics.median(abs(each - middle) for each in own) for own in logs.values()
    )
    deviation = _MAD_TO_DEVIATION * spread
    found = Correction(
        jobs=len({each.spec for own in by_namespace.values() for each in own}),
        namespaces=len(by_namespace),
        median=math.exp(middle),
        upper=math.exp(middle + DEVIATIONS * deviation),
        shift=1.0,
    )
    # What could as well be nothing shifts nothing: the median of n has about this error.
    error = 1.2533 * deviation / math.sqrt(found.namespaces)
    if not found.may_shift or abs(middle) <= 2 * error:
        return found
    shift = min(max(found.median, SHIFTS[0]), SHIFTS[1])
    return Correction(
        jobs=found.jobs,
        namespaces=found.namespaces,
        median=found.median,
        upper=found.upper,
        shift=shift,
    )


def _by_namespace(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = defaultdict(list)
    for each in samples:
        found[each.namespace].append(each)
    return found
