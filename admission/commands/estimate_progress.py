"""How far `vramgate estimate` is with many cases, on standard error.

number of answers and errors -> a changing line on a terminal, a line now and then elsewhere
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

LINES_A_REPORT = 100
"""Progress is one line for so many cases where standard error is no terminal."""


class Reporter(Protocol):
    def answered(self, num_errors: int) -> None:
        """Take note of one more answer, and of how many were errors so far."""


class _LineReporter:
    """Progress as one line for many cases."""

    def __init__(self) -> None:
        self._num_answers = 0
        self._num_errors = 0

    def answered(self, num_errors: int) -> None:
        """Count one answer, and say so at every hundredth."""
        self._num_answers += 1
        self._num_errors = num_errors
        if self._num_answers % LINES_A_REPORT == 0:
            self.say()

    def say(self) -> None:
        """Say how far it is."""
        print(f"{self._num_answers} cases, {self._num_errors} errors", file=sys.stderr)


class _LiveReporter:
    """Progress as one line that changes."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("0 errors", total=None)

    def answered(self, num_errors: int) -> None:
        """Show one more answer."""
        self._progress.update(self._task, advance=1, description=f"{num_errors} errors")


@contextmanager
def reporter() -> Iterator[Reporter]:
    """Show progress on standard error: live on a terminal that does not show the answers too."""
    if sys.stderr.isatty() and not sys.stdout.isatty():
        columns = (
            SpinnerColumn(),
            TextColumn("{task.completed:.0f} cases, {task.description}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as progress:
            yield _LiveReporter(progress)
        return
    lines = _LineReporter()
    yield lines
    lines.say()
