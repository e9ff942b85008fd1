"""One job on the page: the verdict, what fills the card, the run, the modules, the tables.

Part -> Markup
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from estimator.report.drawing import JobDrawing
from estimator.report.page.bar import budget_bar, legend, parts
from estimator.report.page.chart import where
from estimator.report.page.content import Part
from estimator.report.page.figures import label_of, percent, size
from estimator.report.page.markup import Markup, element, joined
from estimator.report.page.run import run
from estimator.report.page.tables import (
    cards_table,
    folded,
    notes,
    ranks_table,
)
from estimator.report.timeline import thinned
from estimator.trace import Method
from estimator.units import gib_down

METHODS = {
    Method.TRACE: "the framework's own operators, traced",
    Method.PLAN: "the framework's own planner, rebuilt",
    Method.COMPILE: "the compiler's own buffer assignment",
    Method.FORMULA: "a trace of what the job does not quite run: a wider interval",
}


def section(part: Part, *, name: str, samples_each: int, is_folded: bool = False) -> Markup:
    """Return *part* as a section; *name* begins its ids, *samples_each* bounds each run.

    *is_folded* leaves all but the verdict, the cards and the bar to be opened.
    """
    drawing = part.drawing
    more = (
        [
            *_runs(part, drawing, name=name, samples_each=samples_each),
            _cards(part) if len(part.cards) == 1 else None,
            _closing(drawing),
        ]
        if drawing is not None
        else [_cards(part) if len(part.cards) == 1 else None]
    )
    return element(
        "section",
        element("h2", part.title, id=f"{name}-title"),
        element("p", part.subtitle, class_="sub") if part.subtitle else None,
        _verdict(part),
        _cards(part) if len(part.cards) > 1 else None,
        _fills(drawing, name=name) if drawing is not None else None,
        folded("The run, the modules, what this rests on", more)
        if is_folded and drawing is not None
        else more,
        class_="job",
        id=name,
        aria_labelledby=f"{name}-title",
    )


def _verdict(part: Part) -> Markup:
    changes = [element("li", change) for change in part.changes]
    return element(
        "div",
        element(
            "p",
            element("strong", part.verdict, class_=f"chip {part.tone.value}"),
            element("span", part.message),
            class_="message",
        ),
        joined(element("p", "What to change:", class_="ask"), element("ul", changes))
        if changes
        else None,
        [element("p", remark, class_="remark") for remark in part.remarks],
        class_=f"verdict {part.tone.value}",
    )


def _fills(drawing: JobDrawing, *, name: str) -> Markup:
    estimate = drawing.estimate
    return joined(
        element("h3", f"What fills {estimate.device.name}"),
        element("p", _takes(drawing)),
        budget_bar(estimate, name=f"{name}-bar"),
        element("p", _key(drawing), class_="key"),
        legend(estimate),
    )


def _runs(part: Part, drawing: JobDrawing, *, name: str, samples_each: int) -> Iterator[Markup]:
    """Yield the runs, that of the fullest rank first and the others to be opened."""
    several = len(drawing.ranks) > 1
    ranked = sorted(drawing.ranks, key=lambda rank: -rank.usage.device_bytes)
    found = [
        run(
            rank.model_copy(update={"timeline": thinned(rank.timeline, most=samples_each)}),
            part.cards,
            on=drawing.estimate.device.name,
            title=f", rank {rank.rank} (stage {rank.stage})" if several else "",
            name=f"{name}-r{rank.rank}",
        )
        for rank in ranked
    ]
    yield from found[:1]
    if several:
        yield folded("The other ranks", found[1:])


def _takes(drawing: JobDrawing) -> str:
    estimate = drawing.estimate
    peak = estimate.peak.device_bytes
    first, *others = parts(estimate)
    words = f"{label_of(first[0])} {size(first[1])} ({percent(first[1], peak)})"
    if others:
        words = f"{words}, then {label_of(others[0][0])} {size(others[0][1])}"
    at = where(estimate.peak_at)
    return f"{size(peak)} on the card if it may. Most of it: {words}. Fullest at {at}."


def _key(drawing: JobDrawing) -> str:
    budget = drawing.estimate.device.budget_bytes
    need = "The thin line below the bar: what the job needs, from least to enough."
    if budget is None:
        return f"{need} The size of the card is not known."
    return f"{need} The upright line: where the card ends ({gib_down(budget)})."


def _cards(part: Part) -> Markup | None:
    if not part.cards:
        return None
    return joined(element("h3", "The cards"), cards_table(part.cards))


def _closing(drawing: JobDrawing) -> Iterable[Markup]:
    estimate = drawing.estimate
    yield element("h3", "The ranks")
    yield ranks_table(estimate)
    yield element("h3", "What this rests on")
    yield element("p", f"Found by: {METHODS[estimate.method]}.")
    if estimate.preallocated_bytes is not None:
        yield element(
            "p",
            f"The allocator takes its memory at the start: the card shows "
            f"{size(estimate.preallocated_bytes)} in use whatever the job needs.",
        )
    yield from notes(drawing)
