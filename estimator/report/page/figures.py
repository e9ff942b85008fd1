"""Sizes in words, and scales to draw them on.

int -> text; figures -> ticks, heights
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from estimator.report.drawing import RankDrawing, Timeline
from estimator.units import GIB, KIB, MIB

BESIDE = "beside"
CACHED = "cached"
ROLES = (
    *("parameters", "optimizer", "gradients", "inputs", "activations"),
    *("temporary", "workspace", "communication"),
)
"""From the bottom: what stays through a step, then what comes and goes."""
LABELS: Mapping[str, str] = {
    BESIDE: "context, libraries",
    CACHED: "cached, not in use",
    "workspace": "library workspace",
}
MAX_TICKS = 5
LOADING = 1 / 8


def label_of(part: str) -> str:
    """Return the words for a part of the memory."""
    return LABELS.get(part, part)


def size(nbytes: int) -> str:
    """Return *nbytes* rounded up: GiB from one on, else MiB, else KiB."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB")):
        if nbytes >= unit:
            return f"{-(-nbytes * 10 // unit) / 10:,.1f} {name}"
    return f"{-(-nbytes // KIB)} KiB"


def percent(part: int, whole: int) -> str:
    """Return a share as text; what is not nothing never reads 0 %."""
    if not whole:
        return "–"
    share = 100 * part / whole
    return "< 1 %" if 0 < share < 1 else f"{share:.0f} %"


def span(least: int, enough: int) -> str:
    """Return `9.1–10.4 GiB`, or one figure where both read the same."""
    low, high = size(least), size(enough)
    if low == high:
        return low
    return f"{low.split(' ')[0]}–{high}" if low[-3:] == high[-3:] else f"{low} – {high}"


def bands_of(rank: RankDrawing) -> dict[str, tuple[int, ...]]:
    """Return what fills the card at each sample, from the bottom; what is never there is out.

    At a sample they sum to reserved and what is beside the allocator. Communication is tensors
    and what its library holds beside the allocator, as in the breakdown.
    """
    timeline = rank.timeline
    count = len(timeline.events)
    beside = {"communication": rank.communication_bytes}
    bands = {BESIDE: (rank.beside_bytes() - rank.communication_bytes,) * count}
    for role in ROLES:
        column, more = timeline.live.get(role), beside.get(role, 0)
        if column or more:
            bands[role] = tuple(size + more for size in column or (0,) * count)
    used = timeline.allocated()
    bands[CACHED] = tuple(held - taken for held, taken in zip(timeline.reserved, used, strict=True))
    return bands


def parts_of(rank: RankDrawing, sample: int) -> dict[str, int]:
    """Return what fills the card at one sample, from the bottom (see `bands_of`)."""
    return {part: column[sample] for part, column in bands_of(rank).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An upright axis from nought to *top*."""

    top: int

    def share(self, nbytes: int) -> float:
        """Return how high *nbytes* is, from 0 to 1."""
        return min(1.0, nbytes / self.top) if self.top else 0.0

    def ticks(self) -> tuple[int, ...]:
        """Return at most `MAX_TICKS` round sizes below the top."""
        unit = GIB if self.top >= 2 * GIB else MIB
        step = unit
        while self.top // step > MAX_TICKS:
            digit = int(str(step // unit)[0])
            step = step * 5 // 2 if digit == 2 else step * 2
        return tuple(range(step, self.top, step))


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A level axis of events: every event of a step is as wide, those of loading are narrower.

    Loading has one event a weight and shows nothing but that they come: it has at most
    `LOADING` of the width, or the one event of a compiled step would be a hair at its end.
    """

    num_events: int
    num_loading: int

    @classmethod
    def of(cls, timeline: Timeline) -> Axis:
        """Return the axis of a run."""
        later = (each.first for each in timeline.spans if each.step)
        return cls(num_events=timeline.num_events, num_loading=next(later, 0))

    def share(self, event: int) -> float:
        """Return how far to the right *event* begins, from 0 to 1."""
        count, loading = max(1, self.num_events), self.num_loading
        width = min(LOADING, loading / count)
        if event < loading:
            return width * event / loading
        return width + (1 - width) * (event - loading) / max(1, count - loading)


def tick_text(nbytes: int) -> str:
    """Return a round size without decimals."""
    return f"{nbytes // GIB} GiB" if nbytes % GIB == 0 else f"{nbytes // MIB} MiB"
