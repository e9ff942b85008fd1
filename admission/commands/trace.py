"""`vramgate trace`: what your own script or module needs, without a cluster or a GPU.

    train.py -- its arguments, or package.module:name, options
        -> child process -> Estimates -> text or JSON, and a Trace file

What is named runs in a child process of this command, never in this one, and never in the
webhook. Exit: 0 done, 2 the script, the module or the arguments, 3 our fault.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click
import orjson

from admission.commands.estimate import Output, print_estimates
from admission.commands.options import FILE, Word
from admission.errors import ManifestError
from admission.plaintext import plain
from estimator.catalog import generic_device, resolve_device
from estimator.documents import read_document
from estimator.errors import EstimatorError
from estimator.spec import JobSpec, Precision, parse_spec
from estimator.traits import traits_of
from estimator.units import GIB
from estimator.workers.user_child import Script, Target, Traced, trace_module, trace_script
from estimator.workers.user_sandbox import Leave
from estimator.workers.wire import error_document

COLOURS = 3
SIZES = "C,H,W"
STEPS, SECONDS, MEMORY_GIB = 2, 300.0, 8
"""How far a script is run, unless it is said."""


@click.command()
@click.argument(
    "target",
    metavar="TARGET",
    help="A script, train.py, or package.module:name of a torch.nn.Module, or of what returns one "
    "when called.",
)
@click.argument("arguments", metavar="[-- ARGUMENTS]", nargs=-1, help="Of the script.")
@click.option(
    "--gpu",
    multiple=True,
    metavar="NAME",
    help="The card: a100-sxm4-40gb, t4, … May be repeated.",
)
@click.option("--batch-size", type=int, help="Samples a step. Default: 1.")
@click.option(
    "--image-size", metavar=SIZES, help="Feed the model images: 3,224,224, or 224 for those."
)
@click.option("--sequence-length", type=int, help="Feed the model this many tokens a sample.")
@click.option("--shape", metavar="N,…", help="Feed the model floats of this shape.")
@click.option(
    "--inputs",
    metavar="FUNCTION",
    help="package.module:name: batch size -> what the model is called with.",
)
@click.option("--loss", metavar="FUNCTION", help="package.module:name: model, inputs -> the loss.")
@click.option("--precision", type=Word(Precision), help="Default: fp32; amp-bf16 is autocast.")
@click.option("--optimizer", metavar="NAME", help="Default: adamw.")
@click.option(
    "--spec", metavar="FILE", help="A JobSpec for everything else; its model is left out."
)
@click.option(
    "--write",
    type=FILE,
    metavar="FILE",
    help="Write a Trace file, FILE.trace.gz: `vramgate estimate` reads it without "
    "your code or PyTorch.",
)
@click.option(
    "--steps", type=click.IntRange(1, 100), help="Of a script: steps that are run. Default: 2."
)
@click.option(
    "--time-limit",
    type=click.FloatRange(1, 86400),
    metavar="SECONDS",
    help="Of a script: how long it may run. Default: 300.",
)
@click.option(
    "--memory-limit",
    type=click.IntRange(1, 4096),
    metavar="GIB",
    help="Of a script: how much of this machine's memory it may take. Default: 8.",
)
@click.option(
    "--allow",
    multiple=True,
    type=Word(Leave),
    help="What a script may do that a trace does not let it: reach the network, write files where "
    "it says, start programs.",
)
@click.option(
    "--output", "-o", type=Word(Output), default=Output.TEXT.value, help="How to write the answer."
)
def command(
    target: str,
    arguments: tuple[str, ...],
    gpu: tuple[str, ...],
    batch_size: int | None,
    image_size: str | None,
    sequence_length: int | None,
    shape: str | None,
    inputs: str | None,
    loss: str | None,
    precision: Precision | None,
    optimizer: str | None,
    spec: str | None,
    write: Path | None,
    steps: int | None,
    time_limit: float | None,
    memory_limit: int | None,
    allow: tuple[Leave, ...],
    output: Output,
) -> None:
    """Say how much GPU memory your script, or a training job of your module TARGET, needs.

    TARGET is run: only name code you trust.
    """
    devices = tuple(resolve_device(name) for name in gpu) or (generic_device(),)
    if write is not None and len({traits_of(device) for device in devices}) > 1:
        message = "a Trace file is of one kind of card, these run attention in different ways"
        raise click.BadParameter(message, param_hint="--gpu")
    # A cuDNN that fails is told by the estimate; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    document = _base(spec)
    for_module = {
        "--batch-size": batch_size,
        "--image-size": image_size,
        "--sequence-length": sequence_length,
        "--shape": shape,
        "--inputs": inputs,
        "--loss": loss,
        "--precision": precision,
        "--optimizer": optimizer,
    }
    for_script = {
        "ARGUMENTS": arguments or None,
        "--steps": steps,
        "--time-limit": time_limit,
        "--memory-limit": memory_limit,
        "--allow": allow or None,
    }
    tracing: Coroutine[Any, Any, Traced]
    if is_script(target):
        _refuse(for_module, "a script says this itself")
        if not Path(target).is_file():
            raise ManifestError(f"{plain(target)}: no such file")
        given = Script(
            path=Path(target),
            arguments=arguments,
            steps=steps or STEPS,
            seconds=time_limit or SECONDS,
            memory_bytes=(memory_limit or MEMORY_GIB) * GIB,
            leave=tuple(word.value for word in allow),
        )
        tracing = trace_script(given, script_job(document), devices, record=write is not None)
    else:
        _refuse(for_script, "for scripts; a script is named by its file, train.py")
        job = _module_job(document, target, for_module)
        named = Target(target=target, inputs=inputs, loss=loss)
        tracing = trace_module(named, job, devices, record=write is not None)
    try:
        traced = asyncio.run(tracing)
    except EstimatorError as error:
        if output is not Output.JSONL:
            raise
        print(orjson.dumps({"id": target, "error": error_document(error)}).decode())
        sys.exit(1)
    if write is not None and traced.content is not None:
        _write(write, traced.content)
    if output is Output.JSONL:
        for estimate in traced.estimates:
            print(orjson.dumps({"id": target, "estimate": estimate.document()}).decode())
    else:
        print_estimates(traced.estimates, output)


def is_script(target: str) -> bool:
    """Return whether TARGET is a file: `train.py`, as apart from `package.module:name`."""
    return target.endswith(".py") or Path(target).is_file()


def script_job(document: dict[str, Any]) -> JobSpec:
    """Return what is known of a script before it runs: the runtime and the release, of --spec."""
    kept = {name: document[name] for name in ("frameworkVersion", "runtime") if document.get(name)}
    model = {"source": "file", "name": "script"}
    return parse_spec({"framework": "pytorch", "model": model, "input": {"batchSize": 1}, **kept})


def _module_job(document: dict[str, Any], target: str, given: dict[str, Any]) -> JobSpec:
    """Return the job of a module: the options laid over *document*."""
    sizes: dict[str, Any] = {
        "batchSize": given["--batch-size"],
        "imageSize": image_size_of(given["--image-size"]),
        "sequenceLength": given["--sequence-length"],
        "shape": _numbers("--shape", given["--shape"]),
    }
    sizes = {name: value for name, value in sizes.items() if value is not None}
    document["input"] = {"batchSize": 1, **document.get("input", {}), **sizes}
    training = document.setdefault("training", {})
    if given["--precision"] is not None:
        training["precision"] = given["--precision"].value
    if given["--optimizer"] is not None:
        training["optimizer"] = {"name": given["--optimizer"]}
    document["model"] = {**document.get("model", {}), "source": "file", "name": target}
    return parse_spec(document)


def _refuse(options: dict[str, Any], reason: str) -> None:
    """Refuse the options that are given.

    Raises:
        BadParameter: with their names.
    """
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise click.BadParameter(f"not accepted here: {reason}", param_hint=", ".join(given))


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
        raise click.BadParameter("whole numbers, separated by commas", param_hint=option) from error


def image_size_of(text: str | None) -> list[int] | None:
    """Return channels, height and width; one number is a square, one or two have three channels.

    Raises:
        BadParameter: if *text* is something else.
    """
    sizes = _numbers("--image-size", text)
    if sizes is None or len(sizes) > 2:
        return sizes
    return [COLOURS, sizes[0], sizes[-1]]
