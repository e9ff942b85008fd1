"""The text of the table of `vramgate fit`.

Grid -> terminal
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from admission.codes import Verdict
from admission.commands.explain_table import PLAIN_WIDTH, STYLES
from admission.commands.fit_grid import Cell, Grid
from admission.plaintext import plain
from estimator.units import gib_down, gib_up

_WORDS = {Verdict.FITS: "fits", Verdict.TIGHT: "tight", Verdict.OOM: "no", Verdict.UNKNOWN: "?"}


def print_grid(grid: Grid, console: Console | None = None) -> None:
    """Print a row a batch and sequence, a column a card."""
    screen = console or Console(highlight=False)
    if not screen.is_terminal:
        screen = Console(file=screen.file, width=PLAIN_WIDTH, highlight=False)
    screen.print(_heading(grid), soft_wrap=True)
    screen.print()
    screen.print(_table(grid))
    screen.print()
    screen.print(
        "fits: surely completes; tight: it may run out of memory; no: it surely does.", style="dim"
    )
    for reason in dict.fromkeys(
        f"?: sequence {cell.length}: {plain(cell.error.message, limit=200)}"
        for cell in grid.cells
        if cell.error is not None
    ):
        screen.print(reason)


def _heading(grid: Grid) -> Text:
    spec = grid.spec
    job = f"{spec.model.name}, {spec.training.precision}, {spec.phase}"
    return Text.assemble((plain(job), "bold"), ": what it needs of a card, and whether it fits")


def _table(grid: Grid) -> Table:
    has_length = any(cell.length is not None for cell in grid.cells)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("batch", justify="right")
    if has_length:
        table.add_column("sequence", justify="right")
    for device in grid.devices:
        budget = "" if device.budget_bytes is None else f"\n{gib_down(device.budget_bytes)}"
        table.add_column(f"{plain(device.name)}{budget}", no_wrap=True)
    width = len(grid.devices)
    for start in range(0, len(grid.cells), width):
        row = grid.cells[start : start + width]
        sizes = [str(row[0].batch)] + ([str(row[0].length)] if has_length else [])
        table.add_row(*sizes, *(_words(cell) for cell in row))
    return table


def _words(cell: Cell) -> Text:
    verdict = cell.verdict
    text = Text(f"{_WORDS.get(verdict, verdict.value):<6}", style=STYLES[verdict])
    if cell.estimate is not None:
        low, high = cell.estimate.least.device_bytes, cell.estimate.enough.device_bytes
        need = f"{gib_up(low).removesuffix(' GiB')}–{gib_up(high)}"
        text.append(need, style="default")
    return text
