"""One estimate as text for a person.

Estimate -> figures, what takes the memory, where the peak is, what was assumed
"""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from admission.plaintext import plain
from estimator.result import Estimate, Moment
from estimator.units import GIB, MIB, gib_down, gib_up

BAR_WIDTH = 30


def estimate_text(estimate: Estimate) -> RenderableType:
    """Return one estimate for a person: figures, what takes the memory, where, what was assumed."""
    parts: list[RenderableType] = [_heading(estimate), "", _figures(estimate), ""]
    parts += [_breakdown(estimate), ""]
    parts.append(f"most allocated  {_moment(estimate.peak_at)}")
    parts.append(f"last segment    {_moment(estimate.reserved_at)}")
    for title, lines in (
        (
            "assumed",
            [f"{note.path} = {note.value}: {note.reason}" for note in estimate.assumptions],
        ),
        ("unknown", [f"{note.path}: {note.reason}" for note in estimate.unknowns]),
        ("warning", estimate.warnings),
    ):
        if lines:
            parts += ["", Text(title, style="bold"), *(_item(line) for line in lines)]
    return Group(*parts)


def _item(line: str) -> Text:
    return Text(f"  {plain(line, limit=500)}", overflow="fold")


def _heading(estimate: Estimate) -> Text:
    spec = estimate.spec
    job = f"{spec['model']['name']}, batch {spec['input']['batchSize']}"
    job = f"{job}, {spec['training']['precision']}, {spec['phase']}"
    return Text.assemble(
        (plain(job), "bold"), " on ", (plain(estimate.device.name), "bold"), _fit(estimate)
    )


def _fit(estimate: Estimate) -> Text:
    """Return how the need relates to the card, nothing for a card of unknown capacity."""
    budget = estimate.device.budget_bytes
    if budget is None:
        return Text("")
    if estimate.enough.device_bytes <= budget:
        verdict, style = "fits", "green"
    elif estimate.least.device_bytes <= budget:
        verdict, style = "tight", "yellow"
    else:
        verdict, style = "does not fit", "bold red"
    return Text.assemble(f" ({gib_down(budget)}): ", (verdict, style))


def _figures(estimate: Estimate) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    for heading in ("allocated", "reserved", "on the card"):
        table.add_column(heading, justify="right")
    table.add_column("")
    least, enough, peak, most = estimate.least, estimate.enough, estimate.peak, estimate.most
    for name, sizes, meaning in (
        (
            "least",
            (None, least.reserved_bytes, least.device_bytes),
            "below it the job certainly dies",
        ),
        ("enough", (None, None, enough.device_bytes), "with it the job completes"),
        ("peak", _sizes(peak), "what it takes if it may"),
        ("most", _sizes(most), "to plan capacity with"),
    ):
        shown = ("" if size is None else gib_up(size) for size in sizes)
        table.add_row(name, *shown, Text(meaning, style="dim"))
    return table


def _sizes(usage: Any) -> tuple[int, int, int]:
    return usage.allocated_bytes, usage.reserved_bytes, usage.device_bytes


def _breakdown(estimate: Estimate) -> Table:
    """Return what makes up the peak, the largest first."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    sizes = estimate.breakdown.model_dump()
    whole = max(estimate.peak.device_bytes, 1)
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        if size:
            bar = "█" * max(1, round(BAR_WIDTH * size / whole))
            table.add_row(name, _size_up(size), Text(bar, style="cyan"))
    return table


def _size_up(nbytes: int) -> str:
    """Return the size of a part, rounded up: one below a GiB in MiB, or all would read 0.1 GiB."""
    return gib_up(nbytes) if nbytes >= GIB else f"{-(-nbytes // MIB)} MiB"


def _moment(moment: Moment) -> str:
    where = f" in {moment.module}" if moment.module else ""
    return plain(f"step {moment.step}, {moment.phase}, {moment.operator}{where}")
