"""`vramgate fit`: what would make a job fit a card, and which card would hold it.

    a spec, a card -> Found -> text or JSON
    a spec, batches, sequences, cards -> Grid -> text or JSON

Exit: 0 it fits, or one change (one cell of the table) does, 1 nothing that was tried does, 2 the
spec or the arguments, 3 our fault.
Estimates in worker processes: this process imports no framework.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from enum import StrEnum
from typing import TYPE_CHECKING

import click

from admission.commands.documents import Notation, write_entries
from admission.commands.estimate import STDIN, in_file, opened
from admission.commands.fit_document import fit_document
from admission.commands.fit_grid import Grid, grid_document, grid_of
from admission.commands.fit_search import Found, Search
from admission.commands.job_file import read_job
from admission.commands.options import Word
from admission.estimates import EstimatePool
from admission.plaintext import plain
from estimator.catalog import resolve_device
from estimator.deferred import Deferred
from estimator.device import Device
from estimator.documents import MAX_BYTES
from estimator.errors import EstimatorError, UnsupportedJobError
from estimator.notes import UnknownCode
from estimator.spec import JobSpec
from estimator.tracefile import Recording
from estimator.workers.pool import Workers

if TYPE_CHECKING:
    from admission.commands import fit_grid_table, fit_table
else:
    fit_grid_table = Deferred("admission.commands.fit_grid_table")
    fit_table = Deferred("admission.commands.fit_table")

MOST, MOST_SIZES = 1 << 20, 16
"""What a table may have: the largest size, and how many of each."""


class Output(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"


@click.command()
@click.argument("spec", metavar="SPEC", help="A JobSpec (YAML or JSON), - for standard input.")
@click.option(
    "--gpu",
    required=True,
    multiple=True,
    metavar="NAME",
    help="The card: a100-sxm4-40gb, t4, … Several make a table.",
)
@click.option(
    "--batch", metavar="N,…", help="A table of these batches. Default: powers of two around it."
)
@click.option("--sequence", metavar="N,…", help="A table of these sequence lengths.")
@click.option("--table", is_flag=True, help="A table around what the job has.")
@click.option(
    "--output", "-o", type=Word(Output), default=Output.TEXT.value, help="How to write the answer."
)
def command(
    spec: str,
    gpu: tuple[str, ...],
    batch: str | None,
    sequence: str | None,
    table: bool,
    output: Output,
) -> None:
    """Say what would make the job in SPEC fit a card, and which card would hold it.

    With several cards, batches or sequences: which of them fit, as a table.
    """
    devices = tuple(dict.fromkeys(resolve_device(name) for name in gpu))
    batches, lengths = _sizes("--batch", batch), _sizes("--sequence", sequence)
    # A worker that fails becomes an error of its own here; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    with opened(spec) as file:
        content = file.read(MAX_BYTES + 1)
    is_table = table or len(devices) > 1 or bool(batches or lengths)
    try:
        if is_table:
            grid = asyncio.run(_grid(content, devices, batches, lengths))
        else:
            found = asyncio.run(_found(content, devices[0]))
    except EstimatorError as error:
        raise in_file(error, "stdin" if spec == STDIN else plain(spec)) from error
    if is_table:
        _write_grid(grid, output)
        sys.exit(0 if grid.has_way else 1)
    if output is Output.JSON:
        write_entries(fit_document(found), Notation.JSON)
    else:
        fit_table.print_fit(found)
    sys.exit(0 if found.has_way else 1)


def _sizes(option: str, text: str | None) -> tuple[int, ...]:
    """Return the whole numbers of `1,2,4`, each once.

    Raises:
        BadParameter: for anything else, and for more than are accepted.
    """
    if text is None:
        return ()
    try:
        found = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError as error:
        raise click.BadParameter("whole numbers, separated by commas", param_hint=option) from error
    if not all(0 < value <= MOST for value in found) or len(found) > MOST_SIZES:
        message = f"1 to {MOST_SIZES} numbers from 1 to {MOST}"
        raise click.BadParameter(message, param_hint=option)
    return found


def _write_grid(grid: Grid, output: Output) -> None:
    if output is Output.JSON:
        write_entries(grid_document(grid), Notation.JSON)
    else:
        fit_grid_table.print_grid(grid)


async def _grid(
    content: bytes, devices: tuple[Device, ...], batches: tuple[int, ...], lengths: tuple[int, ...]
) -> Grid:
    workers = Workers()
    try:
        return await grid_of(_job(content), devices, workers, batches=batches, lengths=lengths)
    finally:
        await workers.close()


async def _found(content: bytes, device: Device) -> Found:
    job = _job(content)
    workers = Workers()
    try:
        return await Search(spec=job, device=device, estimator=EstimatePool(workers)).found()
    finally:
        await workers.close()


def _job(content: bytes) -> JobSpec:
    """Return the job in *content*.

    Raises:
        UnsupportedJobError: if it is a recorded one.
    """
    job = read_job(content)
    if isinstance(job, Recording):
        raise UnsupportedJobError(
            "model.source: a Trace file is one job at one size; no other can be tried",
            code=UnknownCode.FEATURE,
            path="model.source",
            hint="`vramgate estimate` says what it needs",
        )
    return job
