"""The text of `vramgate fit`.

Found -> terminal
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from admission.codes import Verdict
from admission.commands.explain_table import PLAIN_WIDTH, STYLES
from admission.commands.fit_search import LENGTH, Found, Length
from admission.plaintext import plain
from estimator.result import Estimate
from estimator.units import gib_down, gib_up

_WORDS = {
    Verdict.FITS: "fits",
    Verdict.TIGHT: "tight: it may run out of memory",
    Verdict.OOM: "does not fit",
}

_CHEAPEST = "of the listed cards that hold it the one with the least memory (prices are not known)"


def print_fit(found: Found, console: Console | None = None) -> None:
    """Print what the job needs, what would fit, and which card would hold it."""
    screen = console or Console(highlight=False)
    if not screen.is_terminal:
        screen = Console(file=screen.file, width=PLAIN_WIDTH, highlight=False)
    screen.print(_heading(found), soft_wrap=True)
    screen.print()
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _lines(found):
        table.add_row(name, Text(plain(text, limit=300)))
    screen.print(table)


def _heading(found: Found) -> Text:
    spec, device = found.estimate.spec, found.estimate.device
    job = f"{spec['model']['name']}, batch {spec['input']['batchSize']}"
    job = f"{job}, {spec['training']['precision']}, {spec['phase']}"
    budget = "" if device.budget_bytes is None else f" ({gib_down(device.budget_bytes)})"
    return Text.assemble(
        (plain(job), "bold"),
        f" on {plain(device.name)}{budget} needs {_need(found.estimate)}: ",
        (_WORDS.get(found.verdict, str(found.verdict)), STYLES[found.verdict]),
    )


def _lines(found: Found) -> Iterator[tuple[str, str]]:
    batch = found.fit.largest_batch
    yield "largest batch", "not even 1" if batch is None else str(batch)
    if found.length is not None:
        yield "longest sequence", _length(found.length)
    if found.cheapest is None:
        yield "cheapest card", "no listed card holds it as it is"
    else:
        device = found.cheapest.device
        budget = gib_down(device.budget_bytes or 0)
        card = f"{device.name}, {budget}, needs {_need(found.cheapest)} there"
        yield "cheapest card", f"{card}; {_CHEAPEST}"
    for index, failure in enumerate(found.failures):
        yield "" if index else "not told", f"some tries failed and count as not fitting: {failure}"
    if found.verdict is Verdict.FITS:
        return
    for index, knob in enumerate(found.knobs):
        yield "" if index else "any one of", f"{knob.text} ({knob.path}: {knob.value})"
    if not found.knobs:
        tried = ", ".join(found.searched) or "nothing"
        yield "any one of", f"no single change of those tried makes it fit: {tried}"


def _length(length: Length) -> str:
    if length.largest is None:
        return "not even the shortest tried"
    text = f"{length.largest} tokens"
    if length.largest == length.limit:
        return f"{text}, all that the model has positions for"
    limit = "" if length.limit else "; how many the model can take is not known"
    return f"{text}, to {length.step} ({LENGTH} is {length.current} now){limit}"


def _need(estimate: Estimate) -> str:
    low, high = gib_up(estimate.least.device_bytes), gib_up(estimate.enough.device_bytes)
    return low if low == high else f"{low.removesuffix(' GiB')}–{high}"
