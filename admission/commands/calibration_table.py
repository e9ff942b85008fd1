"""The text of `vramgate calibration`: a line a group, and what it does to estimates.

Groups, Corrections -> terminal
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from admission.learning.residuals import (
    SHIFTING_JOBS,
    SHIFTING_NAMESPACES,
    WIDENING_JOBS,
    WIDENING_NAMESPACES,
    Correction,
    Group,
)
from admission.plaintext import plain

PLAIN_WIDTH = 160
"""Where the output is no terminal."""


def print_rows(rows: Sequence[tuple[Group, Correction]], console: Console | None = None) -> None:
    """Print what each group says."""
    screen = console or Console(highlight=False)
    if not screen.is_terminal:
        screen = Console(file=screen.file, width=PLAIN_WIDTH, highlight=False)
    if not rows:
        screen.print(Text("nothing was measured yet: no job with an estimate has ended well"))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("card", "framework", "method", "jobs", "namespaces", "median", "up to"):
        table.add_column(heading, justify="left" if heading in _WORDS else "right")
    table.add_column("what it does", overflow="fold")
    for group, found in rows:
        framework = f"{group.framework} {group.version}".strip()
        words = (plain(text) for text in (group.product, framework, group.method))
        figures = (
            str(found.jobs),
            str(found.namespaces),
            f"{found.median:.3f}",
            f"{found.upper:.3f}",
        )
        table.add_row(*words, *figures, _effect(found))
    screen.print(table)
    screen.print(Text("median and up to: measured peak \u00f7 estimate. No verdict changes by it."))


_WORDS = ("card", "framework", "method")


def _effect(found: Correction) -> str:
    if not found.may_widen:
        return f"nothing: under {WIDENING_JOBS} jobs of {WIDENING_NAMESPACES} namespaces"
    if not found.may_shift:
        return f"may widen; peak stays: under {SHIFTING_JOBS} of {SHIFTING_NAMESPACES}"
    if found.shift == 1.0:
        return "sets the upper end; peak stays: the difference could be chance"
    return f"peak \u00d7 {found.shift:.3f}, and the upper end"
