"""One run of the child of `vramgate trace`, with a cuDNN to ask as the forks of the pool have one.

    module or script, spec, devices -> child process -> Estimates, and the Trace file if wanted

What is named is imported in the child and nowhere else; cuDNN has its own process, which the child
only holds a connection to.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import orjson

from estimator.catalog.stacks import cudnn_version
from estimator.cudnn.folders import library_folders
from estimator.device import Device
from estimator.errors import EstimateTimeoutError, TraceError
from estimator.result import Estimate
from estimator.spec import JobSpec
from estimator.traits import Traits, traits_of
from estimator.units import GIB
from estimator.workers.libraries import Libraries
from estimator.workers.limits import Limits
from estimator.workers.user_sandbox import Leave, environment_of
from estimator.workers.wire import Ask, Operation, ask_document, decode_estimates

CHILD = "estimator.workers.user"
BESIDE_SECONDS = 240.0
"""What importing the frameworks and estimating may take beside a script's own time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a person named, as `package.module:name` each."""

    target: str
    inputs: str | None = None
    loss: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script a person named, and how far it is to be run."""

    path: Path
    arguments: tuple[str, ...]
    steps: int = 2
    """Steps of the optimizer."""
    seconds: float = 300.0
    """From its first line."""
    memory_bytes: int = 8 * GIB
    """Of this machine, beyond what the frameworks take."""
    leave: tuple[str, ...] = ()
    """What it may do that a trace does not let it (`user_sandbox.Leave`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """What the child answered."""

    estimates: tuple[Estimate, ...]
    content: bytes | None
    """The Trace file, of the first card, if it was wanted."""


async def trace_module(
    target: Target,
    spec: JobSpec,
    devices: Sequence[Device],
    *,
    record: bool = False,
    cudnn: Sequence[Path] | None = None,
) -> Traced:
    """Return the estimates of *target* on *devices*; its Trace file too if that is to *record*.

    The cuDNN libraries in the folders *cudnn* are asked, by default those that are installed.

    Raises:
        EstimatorError: of the kind that says why there is no answer.
    """
    request = {"module": asdict(target), "record": record}
    return await _traced(target.target, request, spec, devices, cudnn=cudnn)


async def trace_script(
    script: Script,
    spec: JobSpec,
    devices: Sequence[Device],
    *,
    record: bool = False,
    cudnn: Sequence[Path] | None = None,
) -> Traced:
    """Return the estimates of *script* on *devices*; its Trace file too if that is to *record*.

    It runs once for each kind of card, told of the first card of that kind. *spec* says what a
    script does not: the release, the runtime.

    Raises:
        EstimatorError: of the kind that says why there is no answer.
    """
    kinds: dict[Traits, list[Device]] = {}
    for device in devices:
        kinds.setdefault(traits_of(device, spec.framework), []).append(device)
    found: dict[str, Estimate] = {}
    content: bytes | None = None
    for asked in kinds.values():
        with TemporaryDirectory(prefix="vramgate-") as folder:
            words = {
                **asdict(script),
                "path": str(script.path),
                "folder": folder,
            }
            traced = await _traced(
                str(script.path),
                {"script": words, "record": record},
                spec,
                asked,
                cudnn=cudnn,
                limit_seconds=script.seconds + BESIDE_SECONDS,
                environment=environment_of(frozenset(Leave(word) for word in script.leave)),
            )
        content = content or traced.content
        found |= {card.name: each for card, each in zip(asked, traced.estimates, strict=True)}
    return Traced(estimates=tuple(found[device.name] for device in devices), content=content)


async def _traced(
    name: str,
    request: dict[str, object],
    spec: JobSpec,
    devices: Sequence[Device],
    *,
    cudnn: Sequence[Path] | None,
    limit_seconds: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Traced:
    """Return what a child answers to *request*, with a cuDNN to ask."""
    ask = Ask(operation=Operation.ESTIMATE, spec=spec, devices=tuple(devices))
    request = {**request, "ask": ask_document(ask)}
    folders = library_folders(sys.path, os.environ) if cudnn is None else cudnn
    libraries = Libraries(folders, limits=Limits())
    try:
        wanted = cudnn_version(spec.framework_version, spec.runtime.cudnn)
        connection = libraries.connect(devices, wanted=wanted)
        payload, status = await asyncio.to_thread(
            _exchange, orjson.dumps(request), connection, limit_seconds, environment
        )
    finally:
        await libraries.close()
    if not payload and status == -signal.SIGKILL and limit_seconds is not None:
        raise EstimateTimeoutError(
            f"the process that traces '{name:.200}' took too long, or all of this machine's memory",
            hint="give it more with --time-limit; an `except:` that holds everything holds its end",
        )
    if not payload:
        raise TraceError(f"the process that traces '{name:.200}' ended with {status}")
    estimates = decode_estimates(payload)
    content = orjson.loads(payload).get("content")
    return Traced(estimates=estimates, content=None if content is None else b64decode(content))


def _exchange(
    request: bytes,
    cudnn: socket.socket | None,
    limit_seconds: float | None,
    environment: Mapping[str, str] | None,
) -> tuple[bytes, int]:
    """Return what the child answers to *request*, and its exit status. It gets *cudnn*.

    It is ended after *limit_seconds*.
    """
    reading, writing = os.pipe()
    arguments = ["--answer", str(writing), "--parent", str(os.getpid())]
    descriptors = [writing]
    if cudnn is not None:
        arguments += ["--cudnn", str(cudnn.fileno())]
        descriptors.append(cudnn.fileno())
    with os.fdopen(reading, "rb") as answer:
        try:
            child = subprocess.Popen(
                [sys.executable, "-m", CHILD, *arguments],
                stdin=subprocess.PIPE,
                pass_fds=descriptors,
                env={**os.environ, **(environment or {})},
            )
        finally:
            os.close(writing)
            if cudnn is not None:
                cudnn.close()
        with child:
            assert child.stdin is not None
            child.stdin.write(request)
            child.stdin.close()
            ending = None if limit_seconds is None else Timer(limit_seconds, child.kill)
            if ending is not None:
                ending.start()
            payload = answer.read()
            child.wait()
            if ending is not None:
                ending.cancel()
    return payload, child.returncode
