"""Memory along the run: stacked areas by role, reserved as a line, the cards as lines.

    RankDrawing, Cards -> Markup, and the samples as JSON for the page's script

Drawn whole without a script: positions are percentages of the width, so that text keeps its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from estimator.report.drawing import RankDrawing, Span, Timeline
from estimator.report.page.content import Card
from estimator.report.page.figures import (
    ROLES,
    Axis,
    Scale,
    bands_of,
    size,
    tick_text,
)
from estimator.report.page.markup import Markup, data, element, joined, shown
from estimator.result import Moment
from estimator.units import KIB, gib_down

TOP, PLOT, ROW = 10, 300, 20
HEIGHT = TOP + PLOT + 2 * ROW + 4
UNITS = 10_000
"""Steps of the plot's height."""
WIDE = 100_000
"""Steps of its width."""
NEAR = 1.3
"""A card's line is in the chart unless it is that much higher than what else is."""
DRAWN_NEAR = 2.5
"""The same of the card that the run is on."""
LABEL = 15
"""Labels of two cards are that far apart, in pixels."""


def scale_of(rank: RankDrawing, cards: Sequence[Card], *, on: str) -> Scale:
    """Return the axis for a run and the cards near it; *on* names the run's own card."""
    top = round(1.08 * rank.usage.device_bytes)
    for near, is_own in ((DRAWN_NEAR, True), (NEAR, False)):
        limit = near * top
        for card in cards:
            if (card.name == on) is is_own and 0 < (card.gives_bytes or 0) <= limit:
                top = max(top, round(1.06 * (card.gives_bytes or 0)))
    return Scale(top=max(1, top))


def chart(rank: RankDrawing, cards: Sequence[Card], *, on: str, name: str) -> Markup:
    """Return the chart of one rank's run with its title and description."""
    scale = scale_of(rank, cards, on=on)
    title = f"Memory on {on} along the run"
    usage = rank.usage
    told = (
        f"Most is allocated at {where(rank.peak_at)}: {size(usage.allocated_bytes)}. "
        f"The allocator holds {size(usage.reserved_bytes)} at most, and the process shows "
        f"{size(usage.device_bytes)} on the card. The table below says the same by phase."
    )
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", told, id=f"{name}-desc"),
        _plot(rank, scale),
        _grid(scale),
        _cards(cards, scale, on=on),
        _mark(rank, scale),
        _axis(rank.timeline),
        class_="chart",
        role="img",
        width="100%",
        height=HEIGHT,
        aria_labelledby=f"{name}-title {name}-desc",
    )


def beyond(rank: RankDrawing, cards: Sequence[Card], *, on: str) -> tuple[Card, ...]:
    """Return the cards whose lines are above the chart."""
    top = scale_of(rank, cards, on=on).top
    return tuple(card for card in cards if (card.gives_bytes or 0) > top)


def samples(rank: RankDrawing) -> Markup:
    """Return the samples for the script: columns in KiB, texts once each."""
    timeline = rank.timeline
    roles = [role for role in ROLES if role in timeline.live]
    texts: dict[str, int] = {}
    moments = [
        (
            moment.step,
            moment.phase,
            *(
                texts.setdefault(shown(text, limit=160), len(texts))
                for text in (moment.operator, moment.module)
            ),
        )
        for moment in timeline.moments
    ]
    return data(
        {
            "wide": WIDE,
            "at": _differences(_positions(timeline)),
            "beside": -(-(rank.beside_bytes() - rank.communication_bytes) // KIB),
            "communication": -(-rank.communication_bytes // KIB),
            "reserved": _differences([nbytes // KIB for nbytes in timeline.reserved]),
            "roles": roles,
            "live": [
                _differences([nbytes // KIB for nbytes in timeline.live[role]]) for role in roles
            ],
            "places": timeline.places,
            "moments": moments,
            "texts": list(texts),
            "peak": timeline.events.index(rank.peak_event) if timeline.events else 0,
        }
    )


def where(moment: Moment) -> str:
    """Return a moment in words; loading has no step."""
    place = f"step {moment.step}, {moment.phase}" if moment.step else moment.phase
    operator = f", {moment.operator}" if moment.operator else ""
    return f"{place}{operator}{f' in {moment.module}' if moment.module else ''}"


def phase_text(part: Span) -> str:
    """Return the name of a span."""
    return ", ".join(
        each for each in (f"step {part.step}" if part.step else "", part.phase) if each
    )


def _differences(column: Sequence[int]) -> list[int]:
    return [*column[:1], *(after - before for before, after in pairwise(column))]


def _plot(rank: RankDrawing, scale: Scale) -> Markup:
    """Return the areas, each down to the ground: the lower ones are painted over the higher."""
    timeline = rank.timeline
    areas = []
    tops = [0] * len(timeline.events)
    for part, column in bands_of(rank).items():
        tops = [top + more for top, more in zip(tops, column, strict=True)]
        areas.append((part, tops))
    painted = [
        element("path", d=_area(timeline, top, scale), class_=f"f k-{part}")
        for part, top in reversed(areas)
    ]
    line = element("path", d=Markup(f"M{_steps(timeline, tops, scale)}"), class_="reserved")
    cursor = element("line", class_="cursor", x1=0, x2=0, y1=0, y2=UNITS)
    return element(
        "svg",
        painted,
        line,
        cursor,
        class_="plot",
        x="0",
        y=TOP,
        width="100%",
        height=PLOT,
        viewBox=f"0 0 {WIDE} {UNITS}",
        preserveAspectRatio="none",
    )


def _area(timeline: Timeline, tops: Sequence[int], scale: Scale) -> Markup:
    return Markup(f"M{_steps(timeline, tops, scale)}V{UNITS}H0z")


def _steps(timeline: Timeline, tops: Sequence[int], scale: Scale) -> str:
    """Return a line that holds each sample's height until the next one."""
    if not timeline.events:
        return f"0 {UNITS}"
    heights = [round(UNITS * (1 - scale.share(top))) for top in tops]
    pieces = [f"0 {heights[0]}"]
    at, height = 0, heights[0]
    for position, after in zip(_positions(timeline), heights, strict=True):
        if after != height:
            pieces.append(f"h{position - at}v{after - height}")
            at, height = position, after
    return f"{''.join(pieces)}H{WIDE}"


def _positions(timeline: Timeline) -> list[int]:
    """Return how far to the right each sample begins."""
    axis = Axis.of(timeline)
    return [round(WIDE * axis.share(event)) for event in timeline.events]


def _y(scale: Scale, nbytes: int) -> float:
    return round(TOP + PLOT * (1 - scale.share(nbytes)), 1)


def _grid(scale: Scale) -> Iterable[Markup]:
    for tick in scale.ticks():
        y = _y(scale, tick)
        yield element("line", class_="grid", x1="0", x2="100%", y1=y, y2=y)
        yield element("text", tick_text(tick), class_="tick", x=4, y=y - 4)


def _cards(cards: Sequence[Card], scale: Scale, *, on: str) -> Iterable[Markup]:
    last = float(HEIGHT)
    inside = [card for card in cards if 0 < (card.gives_bytes or 0) <= scale.top]
    for card in sorted(inside, key=lambda each: each.gives_bytes or 0):
        gives = card.gives_bytes or 0
        y = _y(scale, gives)
        last = min(y - 5, last - LABEL)
        label = f"{shown(card.name, limit=34)} {gib_down(gives)}"
        yield element("line", class_="card", x1="0", x2="100%", y1=y, y2=y)
        yield element(
            "text",
            label,
            class_="card own" if card.name == on else "card",
            x="99.5%",
            y=round(last, 1),
            text_anchor="end",
        )


def _mark(rank: RankDrawing, scale: Scale) -> Markup:
    """Return the mark of the peak."""
    share = Axis.of(rank.timeline).share(rank.peak_event)
    height = rank.beside_bytes() + rank.usage.allocated_bytes
    y = _y(scale, height)
    at = f"{100 * share:.3f}%"
    anchor = "end" if share > 0.5 else "start"
    text = element(
        "text",
        f"peak: {size(rank.usage.allocated_bytes)} allocated",
        class_="peak",
        x=at,
        dx=-9 if share > 0.5 else 9,
        y=max(TOP + 12, y - 9),
        text_anchor=anchor,
        data_at=round(share, 6),
    )
    dot = element("circle", class_="peak", cx=at, cy=y, r=4.5, data_at=round(share, 6))
    return joined(dot, text)


def _axis(timeline: Timeline) -> Iterable[Markup]:
    """Yield two rows below the plot: steps, and their phases."""
    spans, axis = timeline.spans, Axis.of(timeline)
    ends = [*(each.first for each in spans[1:]), timeline.num_events]
    steps: list[list[int]] = []
    for part, end in zip(spans, ends, strict=False):
        phase = part.phase or ""
        yield _span(phase, part.first, end, axis, y=TOP + PLOT + 2)
        if steps and steps[-1][0] == part.step:
            steps[-1][2] = end
        else:
            steps.append([part.step, part.first, end])
    for step, first, end in steps:
        name = f"step {step}" if step else ""
        yield _span(name, first, end, axis, y=TOP + PLOT + ROW + 2)


def _span(text: str, first: int, end: int, axis: Axis, *, y: int) -> Markup:
    share = axis.share(first)
    width = axis.share(end) - share
    return element(
        "svg",
        element("rect", class_="span", width="100%", height=ROW - 2),
        element("text", text, class_="span", x=5, y=13) if text else None,
        x=f"{100 * share:.3f}%",
        y=y,
        width=f"{100 * width:.3f}%",
        height=ROW - 2,
        data_at=round(share, 6),
        data_width=round(width, 6),
    )
