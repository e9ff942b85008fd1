"""A process that compiles: one fork a module, ended once XLA has assigned its buffers.

    module, Target -> process -> fork -> CompiledMemory | EstimatorError

The process is forked while this one has a single thread and no client of JAX, and never compiles
itself: forks of it stay safe however often it is asked. It is forked before this one is isolated,
which could not fork afterwards; both isolate themselves. A fork has no sockets, changes no files
and starts no other programs, so XLA assembles nothing. A crash or a hang of XLA costs one fork.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import orjson

from estimator.compilers.dump import Account, read_dump
from estimator.compilers.memory import Buffer, CompiledMemory, read_assignment
from estimator.compilers.target import Target
from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    MemoryLimitError,
    TraceError,
    UnsupportedJobError,
)
from estimator.notes import UnknownCode
from estimator.processes import jail
from estimator.processes.frames import MAX_BYTES, frame, read_frame
from estimator.units import GIB, KIB, MIB

MAX_MODULE_BYTES = MAX_BYTES - MIB
"""Larger modules are refused. A step of a 48-layer transformer has under 4 MiB."""
MEMORY_BYTES = 5 * GIB // 2
"""Private memory of one compile. ResNet-50's was measured to take 0.5 GiB."""
SECONDS = 40.0
"""How long one compile may take: less than a worker lives, so that it can still answer."""
_SAID = 400
_FAILED = "INTERNAL"
"""What XLA says of a module it accepts and cannot lower."""


class Form(StrEnum):
    """What a module is written in."""

    STABLEHLO = "stablehlo"
    """Text or bytecode of StableHLO."""
    HLO = "hlo"
    """A serialised `HloModuleProto`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One module to compile."""

    module: bytes
    target: Target
    form: Form = Form.STABLEHLO
    seconds: float = SECONDS
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further flags of XLA."""


def ready() -> None:
    """Start this process's compiler, if it has none: before a framework has done anything."""
    _compiler_of(os.getpid())


def compile_module(job: Job) -> CompiledMemory:
    """Return what XLA keeps on a card for *job*.

    Raises:
        UnsupportedJobError: if the module is too large or XLA does not take it.
        EstimateTimeoutError: if it takes too long.
        MemoryLimitError: if it needs too much memory.
        TraceError: if XLA crashes, or says what is not understood.
    """
    if len(job.module) > MAX_MODULE_BYTES:
        raise UnsupportedJobError(
            f"model: its compiled step has {len(job.module) // MIB} MiB, at most"
            f" {MAX_MODULE_BYTES // MIB} MiB are compiled",
            code=UnknownCode.MODEL,
            path="model",
        )
    return _compiler_of(os.getpid()).ask(job)


@cache
def _compiler_of(pid: int) -> _Compiler:  # noqa: ARG001 (a fork must not share its parent's)
    return _Compiler()


class _Compiler:
    """This side of the compiler's process. It ends with this process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        parent = os.getpid()
        if os.fork() == 0:
            ours.close()
            _serve(theirs, parent=parent)
        theirs.close()
        self._connection = ours

    def ask(self, job: Job) -> CompiledMemory:
        """Return the answer about *job*."""
        header = {
            "form": job.form,
            "target": job.target.text,
            "num_devices": job.target.num_devices,
            "seconds": job.seconds,
            "options": dict(job.options),
        }
        try:
            self._connection.sendall(frame(orjson.dumps(header)) + frame(job.module))
            said: Any = orjson.loads(read_frame(self._connection))
        except OSError as error:
            raise TraceError("XLA's compiler has ended") from error
        if "memory" in said:
            return _memory(said["memory"])
        raise _error(said["problem"], said["text"], job.seconds)


def _memory(document: dict[str, Any]) -> CompiledMemory:
    buffers = tuple(Buffer(**item) for item in document.pop("largest"))
    arguments, aliased = tuple(document.pop("arguments")), tuple(document.pop("aliased"))
    return CompiledMemory(arguments=arguments, aliased=aliased, largest=buffers, **document)


def _error(problem: str, text: str, seconds: float) -> EstimatorError:
    match problem:
        case "late":
            return EstimateTimeoutError(f"XLA did not compile the step within {seconds:g} s")
        case "memory":
            return MemoryLimitError("XLA needed more host memory than its limit for the step")
        case "refused":
            return UnsupportedJobError(
                f"model: XLA does not compile its step: {text}",
                code=UnknownCode.MODEL,
                path="model",
            )
    return TraceError(f"XLA's compiler failed: {text}")


def _serve(connection: socket.socket, *, parent: int) -> NoReturn:
    """Answer on *connection* until it ends."""
    status = 1
    try:
        jail.die_with_parent(parent)
        _discard_output()
        jail.isolate(forks=True)
        while True:
            header: Any = orjson.loads(read_frame(connection))
            module = read_frame(connection)
            connection.sendall(frame(orjson.dumps(_compile(header, module))))
    except TraceError:
        status = 0  # the other side has gone
    finally:
        os._exit(status)


def _discard_output() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for standard in (1, 2):
        os.dup2(nowhere, standard)


def _compile(header: Mapping[str, Any], module: bytes) -> dict[str, Any]:
    """Return the answer about *module*: tried again without Triton if XLA itself failed."""
    account = _account(header, module, header["options"])
    if account.assignment is None and _FAILED in account.error:
        account = _account(header, module, {**header["options"], **_without_triton()})
    if account.assignment is not None:
        try:
            memory = read_assignment(account.assignment, module=account.module)
        except EstimatorError as error:
            return {"problem": "broken", "text": str(error)}
        cost = {"cpu_seconds": account.cpu_seconds, "resident_bytes": account.resident_bytes}
        return {"memory": asdict(memory) | cost}
    if account.is_late:
        return {"problem": "late", "text": ""}
    if account.error:
        is_memory = "bad_alloc" in account.error or "RESOURCE_EXHAUSTED" in account.error
        return {
            "problem": "memory" if is_memory else "refused",
            "text": " ".join(account.error.split())[:_SAID],
        }
    return {"problem": "broken", "text": f"it ended ({_end(account.status)})"}


def _end(status: int) -> str:
    """Return how a fork ended, in words."""
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _without_triton() -> Mapping[str, Any]:
    options: Mapping[str, Any] = import_module("estimator.compilers.xla").WITHOUT_TRITON
    return options


def _account(header: Mapping[str, Any], module: bytes, options: Mapping[str, Any]) -> Account:
    """Return what a fork says that compiles *module*, which ends once it has said enough."""
    seconds = header["seconds"]
    said, says = os.pipe()
    server = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(said)
        _run(header, module, options, says=says, server=server)
    os.close(says)
    try:
        account = read_dump(_pieces(said, until=time.monotonic() + seconds))
    finally:
        os.close(said)
        os.kill(pid, 9)  # not reaped yet: the pid is still its own
        _, status, usage = os.wait4(pid, 0)
    return account.ended(
        os.waitstatus_to_exitcode(status),
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        resident_bytes=usage.ru_maxrss * KIB,
    )


def _pieces(descriptor: int, *, until: float) -> Any:
    """Yield what is written to *descriptor*, and None when it is too late."""
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            yield None
            return
        piece = os.read(descriptor, MIB)
        if not piece:
            return
        yield piece


def _run(
    header: Mapping[str, Any], module: bytes, options: Mapping[str, Any], *, says: int, server: int
) -> NoReturn:
    """Compile *module* in this fork, its standard output to *says*."""
    try:
        jail.die_with_parent(server)
        os.dup2(says, 1)
        xla = import_module("estimator.compilers.xla")
        jail.confine(memory_bytes=MEMORY_BYTES, wall_seconds=2 * header["seconds"])
        if header["form"] == Form.HLO:
            module = xla.stablehlo_of(module)
        xla.compile_stablehlo(
            module, header["target"], num_devices=header["num_devices"], options=dict(options)
        )
    except BaseException as error:
        os.write(says, f"\n*** Error ***\n{type(error).__name__}: {error}"[:4096].encode())
    finally:
        os._exit(0)
