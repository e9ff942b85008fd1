"""`vramgate fit`: what would make a job fit a card, and which card would hold it.

    a spec, a card -> Found -> text or JSON

Exit: 0 it fits, or one change makes it fit, 1 nothing that was tried does, 2 the spec or the
arguments, 3 our fault.
Estimates in worker processes: this process imports no framework.
"""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from admission.commands.documents import Notation, write_entries
from admission.commands.estimate import STDIN, in_file, opened
from admission.commands.fit_search import Found, Search
from admission.commands.job_file import read_job
from admission.estimates import EstimatePool
from admission.plaintext import plain
from estimator.catalog import resolve_device
from estimator.deferred import Deferred
from estimator.device import Device
from estimator.documents import MAX_BYTES
from estimator.errors import EstimatorError, UnsupportedJobError
from estimator.notes import UnknownCode
from estimator.result import API_VERSION
from estimator.tracefile import Recording
from estimator.workers.pool import Workers

if TYPE_CHECKING:
    from admission.commands import fit_table
else:
    fit_table = Deferred("admission.commands.fit_table")


class Output(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"


def command(
    spec: Annotated[
        str,
        typer.Argument(metavar="SPEC", help="A JobSpec (YAML or JSON), - for standard input."),
    ],
    gpu: Annotated[str, typer.Option(metavar="NAME", help="The card: a100-sxm4-40gb, t4, …")],
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to write the answer.")
    ] = Output.TEXT,
) -> None:
    """Say what would make the job in SPEC fit a card, and which card would hold it."""
    device = resolve_device(gpu)
    # A worker that fails becomes an error of its own here; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    with opened(spec) as file:
        content = file.read(MAX_BYTES + 1)
    try:
        found = asyncio.run(_found(content, device))
    except EstimatorError as error:
        raise in_file(error, "stdin" if spec == STDIN else plain(spec)) from error
    if output is Output.JSON:
        write_entries(fit_document(found), Notation.JSON)
    else:
        fit_table.print_fit(found)
    raise typer.Exit(0 if found.has_way else 1)


async def _found(content: bytes, device: Device) -> Found:
    job = read_job(content)
    if isinstance(job, Recording):
        raise UnsupportedJobError(
            "model.source: a Trace file is one job at one size; no other can be tried",
            code=UnknownCode.FEATURE,
            path="model.source",
            hint="`vramgate estimate` says what it needs",
        )
    workers = Workers()
    try:
        return await Search(spec=job, device=device, estimator=EstimatePool(workers)).found()
    finally:
        await workers.close()


def fit_document(found: Found) -> dict[str, Any]:
    """Return the answer as JSON types; what is not known or not found is left out."""
    estimate, length = found.estimate, found.length
    document: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "Fit",
        "spec": estimate.spec,
        "specDigest": estimate.spec_digest,
        "device": estimate.document()["device"],
        "verdict": str(found.verdict),
        "least": estimate.least.device_bytes,
        "enough": estimate.enough.device_bytes,
    }
    if found.fit.largest_batch is not None:
        document["largestBatch"] = found.fit.largest_batch
    if length is not None and length.largest is not None:
        document["largestSequenceLength"] = length.largest
        document["sequenceLengthStep"] = length.step
    if length is not None and length.limit is not None:
        document["modelPositions"] = length.limit
    if found.cheapest is not None:
        document["cheapestGpu"] = {
            **found.cheapest.document()["device"],
            "enough": found.cheapest.enough.device_bytes,
        }
    knobs = [knob.model_dump(mode="json", by_alias=True) for knob in found.knobs]
    return {**document, "knobs": knobs, "searched": list(found.searched)}
