"""The run of one rank: the chart with what reads it, the modules, and the same as tables.

RankDrawing, Cards -> Markup
"""

from __future__ import annotations

from collections.abc import Iterator

from estimator.report.drawing import RankDrawing
from estimator.report.page.chart import beyond, chart, samples, where
from estimator.report.page.content import Card
from estimator.report.page.figures import ROLES, Axis, label_of, parts_of, size
from estimator.report.page.icicle import icicle
from estimator.report.page.markup import Markup, element, joined
from estimator.report.page.tables import folded, largest_table, modules_table, phases_table
from estimator.units import gib_down


def run(rank: RankDrawing, cards: tuple[Card, ...], *, on: str, title: str, name: str) -> Markup:
    """Return the run of one rank: chart, modules, and the same as tables."""
    return element(
        "div",
        element("h3", f"Along the run{title}"),
        element("p", " ".join(_about_run(rank, cards, on=on)), class_="about"),
        element(
            "figure",
            _controls(rank, name),
            chart(rank, cards, on=on, name=f"{name}-chart"),
            _reader(rank, name),
            element("script", samples(rank), type="application/json"),
            class_="run",
        ),
        folded("The run as a table", phases_table(rank)),
        element("h3", f"Who holds it at the peak{title}"),
        element("p", " ".join(_about_tree(rank)), class_="about"),
        element(
            "figure",
            icicle(rank.tree, name=f"{name}-tree"),
            element("p", "Choose a block to open it.", class_="path", hidden=True),
            class_="tree",
        ),
        folded("The modules as a table", modules_table(rank)),
        folded("The largest tensors", largest_table(rank)),
        class_="rank",
    )


def _about_run(rank: RankDrawing, cards: tuple[Card, ...], *, on: str) -> Iterator[str]:
    usage = rank.usage
    yield (
        f"From left to right every event of the traced steps, not seconds; loading is squeezed. "
        f"Coloured: what live tensors and the process hold; grey up to the line: reserved by the "
        f"allocator and not in use ({size(usage.reserved_bytes - usage.allocated_bytes)} at the "
        "peak of both)."
    )
    if rank.limit_bytes is not None:
        yield f"The run came up against the allocator's limit of {size(rank.limit_bytes)}."
    if above := beyond(rank, cards, on=on):
        names = ", ".join(f"{card.name} {gib_down(card.gives_bytes or 0)}" for card in above[:6])
        more = f" and {len(above) - 6} more" if len(above) > 6 else ""
        yield f"Above the chart: {names}{more}."


def _about_tree(rank: RankDrawing) -> Iterator[str]:
    yield (
        f"{size(rank.tree.bytes)} in {rank.num_tensors} tensors at {where(rank.peak_at)}, "
        "by the module that made each; colour: what most of a block is."
    )
    if all(each.name in ROLES for each in rank.tree.children):
        yield "The plan does not say which module a tensor belongs to: these are roles."


def _controls(rank: RankDrawing, name: str) -> Markup:
    """Return the buttons that show one step alone; a script shows them."""
    timeline = rank.timeline
    axis = Axis.of(timeline)
    stretches = [("whole run", 0.0, 1.0)]
    ends = [*(each.first for each in timeline.spans[1:]), timeline.num_events]
    steps: dict[int, tuple[int, int]] = {}
    for part, end in zip(timeline.spans, ends, strict=False):
        steps[part.step] = (steps.get(part.step, (part.first, 0))[0], end)
    stretches += [
        (f"step {step}" if step else "load", axis.share(first), axis.share(end))
        for step, (first, end) in list(steps.items())[:6]
    ]
    share = axis.share(rank.peak_event)
    stretches.append(("around the peak", max(0.0, share - 0.05), min(1.0, share + 0.05)))
    return element(
        "div",
        [
            element(
                "button",
                text,
                type="button",
                data_from=round(first, 6),
                data_to=round(end, 6),
                aria_pressed="true" if index == 0 else "false",
            )
            for index, (text, first, end) in enumerate(stretches)
        ],
        class_="controls",
        role="group",
        aria_label=f"Part of the run shown ({name})",
        hidden=True,
    )


def _reader(rank: RankDrawing, name: str) -> Markup:
    """Return what says the figures at one moment: the peak, until a script moves it."""
    timeline = rank.timeline
    if rank.peak_event not in timeline.events:
        return joined()
    peak = timeline.events.index(rank.peak_event)
    found = parts_of(rank, peak)
    return element(
        "div",
        element(
            "label",
            "Moment",
            element(
                "input",
                type="range",
                min=0,
                max=len(timeline.events) - 1,
                value=peak,
                step=1,
                aria_describedby=f"{name}-at",
            ),
            class_="moment",
            hidden=True,
        ),
        element(
            "p",
            element("b", "At the peak: "),
            element("span", where(rank.peak_at)),
            class_="at",
            id=f"{name}-at",
        ),
        element(
            "ul",
            [_figure(part, nbytes) for part, nbytes in reversed(found.items())],
            class_="legend now",
        ),
        class_="reader",
    )


def _figure(part: str, nbytes: int) -> Markup:
    return element(
        "li",
        element("i", class_=f"k k-{part}"),
        element("span", label_of(part)),
        element("b", size(nbytes), data_part=part),
    )
