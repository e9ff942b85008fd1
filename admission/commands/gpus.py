"""`vramgate gpus`: the cards the catalog knows.

catalog -> table or JSON
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import click
import orjson
from pydantic.alias_generators import to_camel
from rich.console import Console
from rich.table import Table

from admission.commands.options import Word
from estimator.catalog import GpuRow, gpu_rows

PLAIN_WIDTH = 140
JSON_FIELDS = (
    "name",
    "product",
    "architecture",
    "compute_capability",
    "total_bytes",
    "usable_bytes",
    "mig_profiles",
    "source",
    "is_assumed",
)


class Output(StrEnum):
    """How the list is written."""

    TEXT = "text"
    JSON = "json"


@click.command()
@click.option(
    "--output", "-o", type=Word(Output), default=Output.TEXT.value, help="How to write the list."
)
def command(output: Output) -> None:
    """List the cards that --gpu accepts."""
    rows = gpu_rows()
    if output is Output.JSON:
        documents = [row_document(row) for row in rows]
        print(orjson.dumps(documents, option=orjson.OPT_INDENT_2).decode())
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(file=console.file, width=PLAIN_WIDTH, highlight=False)
    console.print(gpu_table(rows))
    if any(row.is_assumed for row in rows):
        console.print("\n~ rests on an assumption; -o json says which")


def row_document(row: GpuRow) -> dict[str, Any]:
    """Return *row* as JSON types."""
    return {to_camel(name): getattr(row, name) for name in JSON_FIELDS}


def gpu_table(rows: tuple[GpuRow, ...]) -> Table:
    """Return the table of *rows*; figures that rest on an assumption are marked."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("name", "label", "compute"):
        table.add_column(heading, no_wrap=True)
    for heading in ("total", "usable"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("MIG profiles", overflow="fold")
    for row in rows:
        usable = f"~{row.usable}" if row.is_assumed else row.usable
        profiles = " ".join(row.mig_profiles)
        table.add_row(row.name, row.product, row.compute_capability, row.total, usable, profiles)
    return table
