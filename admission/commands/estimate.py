"""`vramgate estimate`: what a job needs, from a JobSpec or a Trace file, without a cluster.

    one job -> Estimates -> text or JSON; lines of cases -> lines of answers, in order

Exit: 0 done, 1 a line of the answers is an error, 2 the spec or the arguments, 3 our fault.
Estimates in worker processes: this process imports no framework.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click
import orjson
from rich.console import Console

from admission.commands.estimate_cases import answer_cases
from admission.commands.estimate_progress import reporter
from admission.commands.estimate_table import estimate_text
from admission.commands.job_file import read_job
from admission.commands.options import Word, job_argument
from admission.errors import ManifestError
from admission.plaintext import plain
from estimator.catalog import generic_device, resolve_device
from estimator.deferred import Deferred
from estimator.device import Device
from estimator.documents import MAX_BYTES
from estimator.errors import EstimatorError, Problem, SpecError, UnsupportedJobError
from estimator.result import Estimate
from estimator.workers.pool import Workers

if TYPE_CHECKING:
    from admission.commands import drawing, picture
else:
    drawing = Deferred("admission.commands.drawing")
    picture = Deferred("admission.commands.picture")

STDIN = "-"
PLAIN_WIDTH = 120


class Output(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


class Form(StrEnum):
    """How one answer of this command is written; JSONL is for many."""

    TEXT = Output.TEXT.value
    JSON = Output.JSON.value
    JSONL = Output.JSONL.value
    HTML = "html"
    PICTURE = "picture"


DRAWN = (Form.HTML, Form.PICTURE)


@click.command()
@job_argument
@click.option(
    "--gpu",
    multiple=True,
    metavar="NAME",
    help="The card: a100-sxm4-40gb, t4, … May be repeated.",
)
@click.option(
    "--output",
    "-o",
    type=Word(Form),
    default=Form.TEXT.value,
    help="jsonl: SPEC holds one case a line, many at once. html, picture: the run, drawn.",
)
def command(spec: str, gpu: tuple[str, ...], output: Form) -> None:
    """Say how much GPU memory the job in SPEC needs."""
    devices = tuple(resolve_device(name) for name in gpu) or (generic_device(),)
    # A worker that fails becomes an error of its own here; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    if output is Form.JSONL:
        if len(devices) > 1:
            raise click.BadParameter("one card for the cases that name none", param_hint="--gpu")
        with opened(spec) as lines:
            sys.exit(asyncio.run(_estimate_cases(lines, devices[0])))
    with opened(spec) as file:
        content = file.read(MAX_BYTES + 1)
    try:
        if output in DRAWN:
            found = asyncio.run(drawing.drawn_job(read_job(content), devices))
        else:
            estimates = asyncio.run(_estimate_one(content, devices))
    except EstimatorError as error:
        raise in_file(error, "stdin" if spec == STDIN else plain(spec)) from error
    if output in DRAWN:
        picture.write(picture.estimate_page(found), is_html=output is Form.HTML)
    else:
        print_estimates(estimates, Output(output.value))


def print_estimates(estimates: Sequence[Estimate], output: Output) -> None:
    """Write *estimates* to standard output: as a table, or as JSON, a list if there are several."""
    if output is Output.JSON:
        documents = [estimate.document() for estimate in estimates]
        print_json(documents[0] if len(documents) == 1 else documents)
    else:
        _print_text(estimates)


async def _estimate_one(content: bytes, devices: Sequence[Device]) -> tuple[Estimate, ...]:
    job = read_job(content)
    workers = Workers()
    try:
        return await workers.estimate(job, devices)
    finally:
        await workers.close()


def in_file(error: EstimatorError, name: str) -> EstimatorError:
    """Return *error* with the name of the file in each line."""
    match error:
        case SpecError():
            problems = [
                Problem(path=name, message=plain(str(problem), limit=500))
                for problem in error.problems
            ]
            return SpecError(problems, hint=error.hint)
        case UnsupportedJobError():
            message = f"{name}: {error.message}"
            return UnsupportedJobError(message, code=error.code, path=error.path, hint=error.hint)
        case _:
            return type(error)(f"{name}: {error.message}", hint=error.hint)


async def _estimate_cases(lines: BinaryIO, device: Device) -> int:
    """Answer each line of *lines* on standard output; return 1 if an answer is an error."""
    workers = Workers()
    num_errors = 0
    with reporter() as progress:
        try:
            window = 2 * workers.max_concurrent
            cases = answer_cases(lines, workers, device=device, window=window)
            async with aclosing(cases) as answers:
                async for answer in answers:
                    num_errors += "error" in answer
                    print(orjson.dumps(answer).decode(), flush=True)
                    progress.answered(num_errors)
        finally:
            await workers.close()
    return 1 if num_errors else 0


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open *path*, or standard input for `-`.

    Raises:
        ManifestError: if it cannot be read.
    """
    if path == STDIN:
        yield sys.stdin.buffer
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115 (closed below; only opening is their fault)
    except OSError as error:
        raise ManifestError(f"{plain(path)}: {error.strerror or 'cannot be read'}") from error
    with file:
        yield file


def print_json(document: object) -> None:
    """Write *document* to standard output."""
    print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def _print_text(estimates: Sequence[Estimate]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(file=console.file, width=PLAIN_WIDTH, highlight=False)
    for index, estimate in enumerate(estimates):
        if index:
            console.print()
        console.print(estimate_text(estimate), soft_wrap=False)
