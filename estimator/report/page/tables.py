"""What the page draws, as tables; and what it does not draw.

Part, RankDrawing, Estimate -> Markup
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from estimator.report.drawing import JobDrawing, RankDrawing
from estimator.report.page.chart import phase_text, where
from estimator.report.page.content import Card
from estimator.report.page.figures import ROLES, label_of, percent, size, span
from estimator.report.page.icicle import path_text, places_of
from estimator.report.page.markup import Content, Markup, element
from estimator.result import Estimate
from estimator.units import gib_down

NONE = "–"
MAX_ROWS = 80


def table(
    caption: str, headings: Sequence[str], rows: Iterable[Sequence[Content]], *, num_words: int = 1
) -> Markup:
    """Return a table in a box that scrolls; its first *num_words* columns are words."""
    return element(
        "div",
        element(
            "table",
            element("caption", caption, class_="heard"),
            element(
                "thead",
                element(
                    "tr",
                    [_head(each, is_number=at >= num_words) for at, each in enumerate(headings)],
                ),
            ),
            element("tbody", [_row(row, num_words) for row in rows]),
        ),
        class_="scroll",
        role="region",
        aria_label=caption,
        tabindex=0,
    )


def folded(summary: str, *content: Content) -> Markup:
    """Return *content* behind a line that opens it."""
    return element("details", element("summary", summary), *content)


def cards_table(cards: Sequence[Card]) -> Markup:
    """Return every card with what it gives and what the job needs there."""
    return table(
        "The cards",
        ("card", "nodes", "verdict", "gives", "needs", "takes if it may"),
        (
            (
                card.name,
                NONE if card.count is None else str(card.count),
                element("span", card.verdict, class_=f"chip {card.tone.value}"),
                NONE if card.gives_bytes is None else gib_down(card.gives_bytes),
                NONE
                if card.least_bytes is None or card.enough_bytes is None
                else span(card.least_bytes, card.enough_bytes),
                NONE if card.peak_bytes is None else size(card.peak_bytes),
            )
            for card in cards
        ),
        num_words=3,
    )


def ranks_table(estimate: Estimate) -> Markup:
    """Return the figures of each distinct rank."""
    return table(
        "By rank",
        (
            *("rank", "stage", "least", "enough", "peak allocated", "peak reserved"),
            *("peak on the card", "most on the card"),
        ),
        (
            (
                str(rank.rank),
                str(rank.stage),
                size(rank.least.device_bytes),
                size(rank.enough.device_bytes),
                size(rank.peak.allocated_bytes),
                size(rank.peak.reserved_bytes),
                size(rank.peak.device_bytes),
                size(rank.most.device_bytes),
            )
            for rank in estimate.ranks
        ),
    )


def phases_table(rank: RankDrawing) -> Markup:
    """Return the most that is allocated in each phase, by role."""
    timeline = rank.timeline
    roles = [role for role in ROLES if role in timeline.live]
    allocated = timeline.allocated()
    ends = [*(each.first for each in timeline.spans[1:]), timeline.num_events]
    rows = []
    for part, end in zip(timeline.spans, ends, strict=False):
        inside = [index for index, event in enumerate(timeline.events) if part.first <= event < end]
        if inside:
            most = max(inside, key=lambda index: allocated[index])
            rows.append(
                (
                    phase_text(part),
                    size(allocated[most]),
                    *(size(timeline.live[role][most]) for role in roles),
                    size(timeline.reserved[inside[-1]]),
                )
            )
    return table(
        "Where most is allocated in each phase",
        ("phase", "allocated", *map(label_of, roles), "reserved after"),
        rows[:MAX_ROWS],
    )


def modules_table(rank: RankDrawing) -> Markup:
    """Return the icicle as rows: every module that holds a hundredth, from the top."""
    whole = rank.tree.bytes
    places = [
        place for place in places_of(rank.tree) if place.level and 100 * place.branch.bytes >= whole
    ]
    return table(
        "Memory at the peak by module",
        ("module", "of the whole", "size"),
        (
            (path_text(place), percent(place.branch.bytes, whole), size(place.branch.bytes))
            for place in places[: 2 * MAX_ROWS]
        ),
    )


def largest_table(rank: RankDrawing) -> Markup:
    """Return the largest tensors at the peak."""
    return table(
        f"The {len(rank.largest)} largest of {rank.num_tensors} tensors at the peak",
        ("module", "role", "made in", "size"),
        (
            (
                held.born.module or NONE,
                label_of(held.role),
                where(held.born.model_copy(update={"module": ""})),
                size(held.bytes),
            )
            for held in rank.largest
        ),
        num_words=3,
    )


def notes(drawing: JobDrawing) -> tuple[Markup, ...]:
    """Return what was assumed and what is unknown."""
    estimate = drawing.estimate
    found = []
    if estimate.unknowns:
        found.append(
            _list("Unknown", [f"{each.path}: {each.reason}" for each in estimate.unknowns])
        )
    if estimate.warnings:
        found.append(_list("Warnings", estimate.warnings))
    if estimate.assumptions:
        found.append(element("h4", "Assumed"))
        found.append(
            table(
                "Assumed",
                ("of", "taken", "because"),
                ((each.path, each.value, each.reason) for each in estimate.assumptions),
                num_words=3,
            )
        )
    return tuple(found)


def _list(title: str, lines: Iterable[str]) -> Markup:
    return element(
        "div", element("h4", title), element("ul", [element("li", line) for line in lines])
    )


def _head(text: str, *, is_number: bool) -> Markup:
    return element("th", text, scope="col", class_="number" if is_number else None)


def _row(cells: Sequence[Content], num_words: int) -> Markup:
    first, *others = cells
    return element(
        "tr",
        element("th", first, scope="row"),
        [
            element("td", cell, class_=None if index < num_words else "number")
            for index, cell in enumerate(others, 1)
        ],
    )
