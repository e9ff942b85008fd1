"""`vramgate trace`: what a job of your own module needs, without a cluster or a GPU.

    package.module:name, options -> child process -> Estimates -> text or JSON, and a Trace file

The module is imported in a child process of this command, never in this one, and never by the
webhook. Exit: 0 done, 2 the module or the arguments, 3 our fault.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from admission.commands.estimate import Output, print_estimates
from admission.errors import ManifestError
from admission.plaintext import plain
from estimator.catalog import generic_device, resolve_device
from estimator.documents import read_document
from estimator.errors import EstimatorError
from estimator.spec import Precision, parse_spec
from estimator.traits import traits_of
from estimator.workers.user_child import Target, trace_module
from estimator.workers.wire import error_document

COLOURS = 3
SIZES = "C,H,W"


def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="package.module:name of a torch.nn.Module, or of what returns one when called.",
        ),
    ],
    gpu: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The card: a100-sxm4-40gb, t4, … May be repeated."),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Samples a step. Default: 1.")] = None,
    image_size: Annotated[
        str | None,
        typer.Option(metavar=SIZES, help="Feed the model images: 3,224,224, or 224 for those."),
    ] = None,
    sequence_length: Annotated[
        int | None, typer.Option(help="Feed the model this many tokens a sample.")
    ] = None,
    shape: Annotated[
        str | None, typer.Option(metavar="N,…", help="Feed the model floats of this shape.")
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(
            metavar="FUNCTION",
            help="package.module:name: batch size -> what the model is called with.",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(metavar="FUNCTION", help="package.module:name: model, inputs -> the loss."),
    ] = None,
    precision: Annotated[
        Precision | None, typer.Option(help="Default: fp32; amp-bf16 is autocast.")
    ] = None,
    optimizer: Annotated[str | None, typer.Option(metavar="NAME", help="Default: adamw.")] = None,
    spec: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A JobSpec for everything else; its model is left out."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a Trace file, FILE.trace.gz: `vramgate estimate` reads it without "
            "your code or PyTorch.",
        ),
    ] = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to write the answer.")
    ] = Output.TEXT,
) -> None:
    """Say how much GPU memory a training job of your module TARGET needs.

    TARGET is imported and run: only name code you trust.
    """
    devices = tuple(resolve_device(name) for name in gpu or ()) or (generic_device(),)
    if write is not None and len({traits_of(device) for device in devices}) > 1:
        message = "a Trace file is of one kind of card, these run attention in different ways"
        raise typer.BadParameter(message, param_hint="--gpu")
    # A cuDNN that fails is told by the estimate; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    document = _base(spec)
    given: dict[str, Any] = {
        "batchSize": batch_size,
        "imageSize": image_size_of(image_size),
        "sequenceLength": sequence_length,
        "shape": _numbers("--shape", shape),
    }
    given = {name: value for name, value in given.items() if value is not None}
    document["input"] = {"batchSize": 1, **document.get("input", {}), **given}
    training = document.setdefault("training", {})
    if precision is not None:
        training["precision"] = precision.value
    if optimizer is not None:
        training["optimizer"] = {"name": optimizer}
    document["model"] = {**document.get("model", {}), "source": "file", "name": target}
    job = parse_spec(document)
    named = Target(target=target, inputs=inputs, loss=loss)
    try:
        traced = asyncio.run(trace_module(named, job, devices, record=write is not None))
    except EstimatorError as error:
        if output is not Output.JSONL:
            raise
        print(orjson.dumps({"id": target, "error": error_document(error)}).decode())
        raise typer.Exit(1) from error
    if write is not None and traced.content is not None:
        _write(write, traced.content)
    if output is Output.JSONL:
        for estimate in traced.estimates:
            print(orjson.dumps({"id": target, "estimate": estimate.document()}).decode())
    else:
        print_estimates(traced.estimates, output)


def _write(path: Path, content: bytes) -> None:
    """Write a Trace file.

    Raises:
        ManifestError: if it cannot be written.
    """
    try:
        path.write_bytes(content)
    except OSError as error:
        message = error.strerror or "cannot be written"
        raise ManifestError(f"{plain(str(path))}: {message}") from error


def _base(path: str | None) -> dict[str, Any]:
    """Return the document the options are laid over.

    Raises:
        ManifestError: if the file cannot be read.
    """
    if path is None:
        return {"framework": "pytorch"}
    try:
        text = Path(path).read_text(errors="replace")
    except OSError as error:
        raise ManifestError(f"{plain(path)}: {error.strerror or 'cannot be read'}") from error
    document = read_document(text)
    if not isinstance(document, dict):
        raise ManifestError(f"{plain(path)}: a mapping is expected")
    return {"framework": "pytorch", **document}


def _numbers(option: str, text: str | None) -> list[int] | None:
    """Return the whole numbers of `3,224,224`.

    Raises:
        BadParameter: if *text* is something else.
    """
    if text is None:
        return None
    try:
        return [int(part) for part in text.replace("x", ",").split(",")]
    except ValueError as error:
        raise typer.BadParameter("whole numbers, separated by commas", param_hint=option) from error


def image_size_of(text: str | None) -> list[int] | None:
    """Return channels, height and width; one number is a square, one or two have three channels.

    Raises:
        BadParameter: if *text* is something else.
    """
    sizes = _numbers("--image-size", text)
    if sizes is None or len(sizes) > 2:
        return sizes
    return [COLOURS, sizes[0], sizes[-1]]
