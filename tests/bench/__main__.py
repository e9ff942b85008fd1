"""Print every figure with the machine's name; exit 1 if one does not hold."""

from __future__ import annotations

import asyncio
import sys

from rich.console import Console
from rich.table import Table

from tests.bench.estimates import estimate_figures
from tests.bench.figures import Figure, machine
from tests.bench.reviews import review_figures


async def figures() -> list[Figure]:
    """Return every figure, measured one after the other."""
    found = [figure async for figure in estimate_figures()]
    return found + [figure async for figure in review_figures()]


def main() -> int:
    """Measure and print."""
    console = Console()
    console.print(machine(), soft_wrap=True)
    table = Table("figure", "measured", "asked", "holds")
    found = asyncio.run(figures())
    for figure in found:
        low = f"{figure.low:g} to " if figure.low else "up to "
        asked = f"{low}{figure.high:g} {figure.unit}"
        measured = f"{figure.value:.2f} {figure.unit}"
        table.add_row(figure.name, measured, asked, "yes" if figure.holds else "NO")
    console.print(table)
    return 0 if all(figure.holds for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
