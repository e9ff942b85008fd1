"""`vramgate account`: where the reserved memory of a job comes from, taking by taking.

    a spec, a card -> JobAccount -> text, JSON or Markdown

A command of its own: an estimate is read by its figures and `explain` judges manifests, while an
account is as long as the run takes memory. Exit: 0 done, 2 the spec or the arguments, 3 our fault.
Accounts in a worker process: this process imports no framework.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum

import click
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from admission.commands.estimate import (
    PLAIN_WIDTH,
    STDIN,
    in_file,
    opened,
    print_json,
)
from admission.commands.job_file import read_job
from admission.commands.options import Word, job_argument
from admission.plaintext import plain
from estimator.catalog import generic_device, resolve_device
from estimator.device import Device
from estimator.documents import MAX_BYTES
from estimator.errors import EstimatorError
from estimator.report.markdown import markdown
from estimator.report.records import JobAccount
from estimator.report.sections import Section, sections_of, title_of
from estimator.workers.pool import Workers

TOP = 10
"""Takings shown unless a person asks for more."""
CELL = 120
"""The longest text of a cell."""


class Output(StrEnum):
    """How the account is written."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


@click.command()
@job_argument
@click.option("--gpu", metavar="NAME", help="The card: a100-sxm4-40gb, t4, …")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=TOP,
    metavar="N",
    help="Show the N largest takings; JSON has all.",
)
@click.option(
    "--output", "-o", type=Word(Output), default=Output.TEXT.value, help="How to write the account."
)
def command(spec: str, gpu: str | None, top: int, output: Output) -> None:
    """Say where the GPU memory that the job in SPEC reserves comes from."""
    device = resolve_device(gpu) if gpu else generic_device()
    # A worker that fails becomes an error of its own here; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    with opened(spec) as file:
        content = file.read(MAX_BYTES + 1)
    try:
        found = asyncio.run(_account(content, device))
    except EstimatorError as error:
        raise in_file(error, "stdin" if spec == STDIN else plain(spec)) from error
    match output:
        case Output.JSON:
            print_json(found.document())
        case Output.MARKDOWN:
            print(account_markdown(found, top=top))
        case Output.TEXT:
            _print_text(found, top=top)


async def _account(content: bytes, device: Device) -> JobAccount:
    job = read_job(content)
    workers = Workers()
    try:
        (found,) = await workers.account(job, [device])
    finally:
        await workers.close()
    return found


def account_markdown(found: JobAccount, *, top: int) -> str:
    """Return the account as Markdown that is safe to show."""
    return f"# {plain(title_of(found))}\n\n{markdown(_plain(sections_of(found, top=top)))}"


def account_text(found: JobAccount, *, top: int) -> Iterator[RenderableType]:
    """Yield the account for a terminal, part by part."""
    yield Text(plain(title_of(found)), style="bold")
    for section in _plain(sections_of(found, top=top)):
        yield ""
        yield Text(section.title, style="bold")
        for sentence in section.sentences:
            yield Text(f"  {sentence}")
        if section.headings:
            yield _table(section)
    for title, lines in (
        ("assumed", [f"{note.path} = {note.value}" for note in found.assumptions]),
        ("unknown", [f"{note.path}: {note.reason}" for note in found.unknowns]),
    ):
        if lines:
            yield ""
            yield Text(title, style="bold")
            yield from (Text(f"  {plain(line, limit=500)}", overflow="fold") for line in lines)


def _table(section: Section) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for index, heading in enumerate(section.headings):
        is_word = index < section.num_words
        table.add_column(
            heading,
            justify="left" if is_word else "right",
            overflow="fold",
            no_wrap=not is_word,
        )
    for row in section.rows:
        table.add_row(*map(Text, row))
    return table


def _plain(sections: Iterable[Section]) -> Iterator[Section]:
    """Yield *sections* without characters of a spec that a terminal would obey."""
    for section in sections:
        yield replace(
            section,
            sentences=tuple(plain(sentence, limit=500) for sentence in section.sentences),
            rows=tuple(tuple(plain(cell, limit=CELL) for cell in row) for row in section.rows),
        )


def _print_text(found: JobAccount, *, top: int) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(file=console.file, width=PLAIN_WIDTH, highlight=False)
    for part in account_text(found, top=top):
        console.print(part, soft_wrap=False)
