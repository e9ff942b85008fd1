"""Series over a week, and how they are written for Prometheus to read.

    a process' exposition, what changes of it -> lines of OpenMetrics, a sample a minute

Names and labels are those of the real expositions: what is not told to change stays as the process
shows it at its start, as most of what closed sets of labels start at 0 does in a cluster too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import IO

import numpy as np
from numpy.typing import NDArray
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.prometheus.week.cluster import MINUTES

Values = NDArray[np.int64] | NDArray[np.float64]
Labels = Mapping[str, str]
Key = tuple[str, frozenset[tuple[str, str]]]
"""A name, and labels without those of the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series of one target, from minute `begins` on."""

    name: str
    labels: Labels
    values: Values
    begins: int = 0

    def lines(self, stamps: Sequence[str], since: int, until: int) -> str:
        """Return its samples of the minutes [*since*, *until*), a line each."""
        since = max(since, self.begins)
        until = min(until, self.begins + len(self.values))
        if since >= until:
            return ""
        shown = self.values[since - self.begins : until - self.begins]
        text = labelled(self.name, self.labels)
        steps = np.flatnonzero(np.diff(shown)) + 1
        found = []
        for first, last in pairwise((0, *steps.tolist(), len(shown))):
            # Samples that stay as they are differ in their time only: one join writes them.
            start = f"{text} {shown[first]} "
            found.append(start + f"\n{start}".join(stamps[since + first : since + last]))
        return "\n".join(found) + "\n"


def labelled(name: str, labels: Labels) -> str:
    """Return a name with its labels, as a line begins."""
    text = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{text}}}"


def key(name: str, labels: Labels | None = None, **more: str) -> Key:
    """Return what a series is found by."""
    return name, frozenset({**(labels or {}), **more}.items())


def of_target(text: str, changes: Mapping[Key, Values], target: Labels) -> Iterator[Series]:
    """Yield the series of the exposition *text*, with *changes* in place of what they show.

    Raises:
        KeyError: if a change is of a series that the process does not show.
    """
    left = dict(changes)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found = left.pop(key(sample.name, sample.labels), None)
            values = np.full(MINUTES, sample.value) if found is None else found
            # A sample's own labels win, as with `honor_labels`: `namespace` is that of a job.
            yield Series(name=sample.name, labels={**target, **sample.labels}, values=values)
    if left:
        raise KeyError(f"not shown: {sorted(map(str, left))[:3]}")


def counted(minutes: NDArray[np.int64], weights: Values | None = None) -> Values:
    """Return a counter of what happens in *minutes*; what is after the week is left out."""
    within = minutes < MINUTES
    weights = None if weights is None else weights[within]
    counts = np.bincount(minutes[within], weights=weights, minlength=MINUTES)
    return np.cumsum(counts).astype(np.int64)


def held(begins: NDArray[np.int64], ends: NDArray[np.int64], amounts: Values) -> Values:
    """Return a gauge of what is held from *begins* until *ends*, by all together."""
    return np.asarray(counted(begins, amounts) - counted(ends, amounts))


def write(series: Iterable[Series], file: IO[str], *, start: int, since: int, until: int) -> None:
    """Write the minutes [*since*, *until*) of *series*; minute 0 is *start*, in seconds."""
    stamps = [str(start + 60 * minute) for minute in range(MINUTES)]
    for each in series:
        file.write(each.lines(stamps, since, until))
    file.write("# EOF\n")
