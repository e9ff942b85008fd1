"""One run of the child of `vramgate trace`, with a cuDNN to ask as the forks of the pool have one.

    module, spec, devices -> child process -> Estimates, and the Trace file if it is wanted

The module is imported in the child and nowhere else; cuDNN has its own process, which the child
only holds a connection to.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from estimator.catalog.stacks import cudnn_version
from estimator.cudnn.folders import library_folders
from estimator.device import Device
from estimator.errors import TraceError
from estimator.result import Estimate
from estimator.spec import JobSpec
from estimator.workers.libraries import Libraries
from estimator.workers.limits import Limits
from estimator.workers.wire import Ask, Operation, ask_document, decode_estimates

CHILD = "estimator.workers.user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a person named, as `package.module:name` each."""

    target: str
    inputs: str | None = None
    loss: str | None = None


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
    ask = Ask(operation=Operation.ESTIMATE, spec=spec, devices=tuple(devices))
    request = {"ask": ask_document(ask), "module": asdict(target), "record": record}
    folders = library_folders(sys.path, os.environ) if cudnn is None else cudnn
    libraries = Libraries(folders, limits=Limits())
    try:
        wanted = cudnn_version(spec.framework_version, spec.runtime.cudnn)
        connection = libraries.connect(devices, wanted=wanted)
        payload, status = await asyncio.to_thread(_exchange, orjson.dumps(request), connection)
    finally:
        await libraries.close()
    if not payload:
        raise TraceError(f"the process that traces '{target.target:.200}' ended with {status}")
    estimates = decode_estimates(payload)
    content = orjson.loads(payload).get("content")
    return Traced(estimates=estimates, content=None if content is None else b64decode(content))


def _exchange(request: bytes, cudnn: socket.socket | None) -> tuple[bytes, int]:
    """Return what the child answers to *request*, and its exit status. It gets *cudnn*."""
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
            )
        finally:
            os.close(writing)
            if cudnn is not None:
                cudnn.close()
        with child:
            assert child.stdin is not None
            child.stdin.write(request)
            child.stdin.close()
            payload = answer.read()
    return payload, child.returncode
