"""`vramgate trace`: what a job of your own module needs, without a cluster or a GPU.

    package.module:name, options -> child process -> Estimates -> text or JSON

The module is imported in a child process of this command, never in this one, and never by the
webhook. Exit: 0 done, 2 the module or the arguments, 3 our fault.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from admission.commands.estimate import Output, print_estimates
from admission.errors import ManifestError
from admission.plaintext import plain
from estimator.catalog import generic_device, resolve_device
from estimator.device import Device
from estimator.documents import read_document
from estimator.errors import EstimatorError, TraceError
from estimator.result import Estimate
from estimator.spec import JobSpec, Precision, parse_spec
from estimator.workers.wire import (
    Ask,
    Operation,
    decode_estimates,
    encode_ask,
    error_document,
)

CHILD = "estimator.workers.user"
SIZES = "C,H,W"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a person named, as `package.module:name` each."""

    module: str
    inputs: str | None
    loss: str | None


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
        str | None, typer.Option(metavar=SIZES, help="Feed the model images: 3,224,224.")
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
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to write the answer.")
    ] = Output.TEXT,
) -> None:
    """Say how much GPU memory a training job of your module TARGET needs.

    TARGET is imported and run: only name code you trust.
    """
    devices = tuple(resolve_device(name) for name in gpu or ()) or (generic_device(),)
    document = _base(spec)
    given: dict[str, Any] = {
        "batchSize": batch_size,
        "imageSize": _numbers("--image-size", image_size),
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
    try:
        estimates = trace(Target(module=target, inputs=inputs, loss=loss), job, devices)
    except EstimatorError as error:
        if output is not Output.JSONL:
            raise
        print(orjson.dumps({"id": target, "error": error_document(error)}).decode())
        raise typer.Exit(1) from error
    if output is Output.JSONL:
        for estimate in estimates:
            print(orjson.dumps({"id": target, "estimate": estimate.document()}).decode())
    else:
        print_estimates(estimates, output)


def trace(target: Target, job: JobSpec, devices: tuple[Device, ...]) -> tuple[Estimate, ...]:
    """Return the estimates of *target* on *devices*, made in a child process.

    Raises:
        EstimatorError: of the kind that says why there is none.
    """
    ask = Ask(operation=Operation.ESTIMATE, spec=job, devices=devices)
    request = orjson.dumps(
        {
            "ask": orjson.loads(encode_ask(ask)),
            "module": {"target": target.module, "inputs": target.inputs, "loss": target.loss},
        }
    )
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as answer:
        try:
            child = subprocess.Popen(
                [sys.executable, "-m", CHILD, "--answer", str(writing)],
                stdin=subprocess.PIPE,
                pass_fds=(writing,),
            )
        finally:
            os.close(writing)
        with child:
            assert child.stdin is not None
            child.stdin.write(request)
            child.stdin.close()
            payload = answer.read()
    if not payload:
        raise TraceError(
            f"the process that traces '{plain(target.module)}' ended with {child.returncode}"
        )
    return decode_estimates(payload)


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
