"""A stand-in for a framework, imported by templates of tests: fast, and does what it is told.

The model's name says what a fork does; what it saw is in the estimate's warnings.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from estimator.cudnn import Edition
from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.notes import UnknownCode
from estimator.result import (
    Breakdown,
    DeviceFacts,
    Enough,
    Estimate,
    Fit,
    Least,
    Moment,
    Usage,
)
from estimator.trace import Method
from estimator.workers.wire import Ask, Operation, decode_ask, encode_answers
from tests.estimator.cudnn.cases import A100, convolution

Handler = Callable[[bytes, Edition | None], bytes]


def prepare(framework: str) -> Handler:
    """Return the handler that does what the model's name says."""
    return answer


def prepare_missing(framework: str) -> Handler:
    """Fail as a framework that is not installed does."""
    raise UnsupportedJobError(
        f"framework: '{framework}' needs the package 'torch', which is not installed",
        code=UnknownCode.FRAMEWORK,
        path="framework",
        hint="pip install 'vramgate[torch]'",
    )


def prepare_broken(framework: str) -> Handler:
    """Fail as a broken installation does."""
    raise ValueError("a library of the wrong version\n  and a second line for its author")


def prepare_crashing(framework: str) -> Handler:
    """End by a signal while importing."""
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError


def prepare_stuck(framework: str) -> Handler:
    """Import for ever."""
    signal.pause()
    raise AssertionError


def answer(payload: bytes, plans: Edition | None) -> bytes:
    """Do what the model's name says."""
    ask = decode_ask(payload)
    if ask.operation is Operation.FIT:
        return encode_answers([Fit(device=_facts(ask, 0), largest_batch=7)])
    if ask.spec.model.name == "ask-cudnn":
        seen = _ask_cudnn(plans)
    else:
        seen = _ACTIONS[ask.spec.model.name](ask)
    return encode_answers([_estimate(ask, index, seen) for index in range(len(ask.devices))])


def _ask_cudnn(plans: Edition | None) -> str:
    """Say what a convolution on an A100 is answered."""
    if plans is None:
        return json.dumps(None)
    (answer,) = plans.ask([convolution()], A100)
    found = None if answer is None else len(answer.instant)
    return json.dumps({"version": plans.version, "plans": found, "reason": plans.reason})


def _nothing(ask: Ask) -> str:
    return ""


def _pid(ask: Ask) -> str:
    return str(os.getpid())


def _meet(ask: Ask) -> str:
    """Wait until as many forks as the batch size have left a mark in the folder of the spec."""
    folder = Path(str(ask.spec.model.config["folder"]))
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < ask.spec.input.batch_size:
        time.sleep(0.005)
    return str(os.getpid())


def _wait(ask: Ask) -> str:
    """Leave a mark and wait for the end."""
    if folder := ask.spec.model.config.get("folder"):
        (Path(str(folder)) / str(os.getpid())).touch()
    while True:
        signal.pause()


def _spin(ask: Ask) -> str:
    while True:
        pass


def _spin_untimed(ask: Ask) -> str:
    """Escape the wall timer; processor time is left."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    return _spin(ask)


def _escape(ask: Ask) -> str:
    """Escape every timer of its own."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    return _wait(ask)


def _allocate(ask: Ask) -> str:
    return str(len(bytearray(1 << 40)))


def _fill(ask: Ask) -> str:
    return str(len([bytes(1 << 20) for _ in range(1 << 20)]))


def _allocate_in_library(ask: Ask) -> str:
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 byte")


def _abort_out_of_memory(ask: Ask) -> str:
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def _abort(ask: Ask) -> str:
    os.abort()


def _bug(ask: Ask) -> str:
    raise KeyError("a bug")


def _spec_error(ask: Ask) -> str:
    raise SpecError([Problem(path="model.name", message="no such model")], hint="try another")


def _unsupported(ask: Ask) -> str:
    raise UnsupportedJobError(
        "optimizer 'x' is not modelled",
        code=UnknownCode.OPTIMIZER,
        path="training.optimizer.name",
        hint="known: adamw",
    )


def _open_sockets(ask: Ask) -> str:
    """Say which kinds of socket could be opened."""
    opened = []
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):
        try:
            socket.socket(family, socket.SOCK_RAW if family == 16 else socket.SOCK_STREAM).close()
        except PermissionError:
            continue
        opened.append(family.name)
    return json.dumps(opened)


def _start_program(ask: Ask) -> str:
    try:
        os.execv(sys.executable, [sys.executable, "-c", ""])
    except OSError as error:
        return type(error).__name__


def _write_file(ask: Ask) -> str:
    path = Path(str(ask.spec.model.config["path"]))
    seen = []
    for change in (lambda: path.write_text("x"), path.unlink):
        try:
            change()
        except OSError as error:
            seen.append(os.strerror(error.errno or 0))
    return json.dumps(seen)


def _print(ask: Ask) -> str:
    """Write more than a pipe holds."""
    for _ in range(1 << 10):
        print("x" * (1 << 10))
    return ""


def _environment(ask: Ask) -> str:
    return json.dumps(dict(os.environ))


def _surroundings(ask: Ask) -> str:
    """Say what belongs to a fork: its open files, limits and parent."""
    links = [str(item.resolve()) for item in Path("/proc/self/fd").iterdir()]
    return json.dumps(
        {
            "sockets": sum("socket:" in link for link in links),
            "core": resource.getrlimit(resource.RLIMIT_CORE),
            "parent": os.getppid(),
        }
    )


_ACTIONS: dict[str, Callable[[Ask], str]] = {
    "nothing": _nothing,
    "pid": _pid,
    "meet": _meet,
    "wait": _wait,
    "spin": _spin,
    "spin-untimed": _spin_untimed,
    "escape": _escape,
    "allocate": _allocate,
    "fill": _fill,
    "allocate-in-library": _allocate_in_library,
    "abort-out-of-memory": _abort_out_of_memory,
    "abort": _abort,
    "bug": _bug,
    "spec-error": _spec_error,
    "unsupported": _unsupported,
    "open-sockets": _open_sockets,
    "start-program": _start_program,
    "write-file": _write_file,
    "print": _print,
    "environment": _environment,
    "surroundings": _surroundings,
}


def _facts(ask: Ask, index: int) -> DeviceFacts:
    device = ask.devices[index]
    return DeviceFacts(
        name=device.name, compute_capability=".".join(map(str, device.compute_capability))
    )


def _estimate(ask: Ask, index: int, seen: str) -> Estimate:
    usage = Usage(allocated_bytes=2, reserved_bytes=3, device_bytes=4)
    moment = Moment(step=1, phase="backward", operator="aten.mm", module="fc")
    return Estimate(
        spec=ask.spec.normalised(),
        spec_digest=ask.spec.digest(),
        device=_facts(ask, index),
        least=Least(reserved_bytes=2, device_bytes=3),
        enough=Enough(device_bytes=4),
        peak=usage,
        most=usage,
        breakdown=Breakdown(parameters=2, cached=1, context=1),
        peak_at=moment,
        reserved_at=moment,
        ranks=(),
        method=Method.TRACE,
        warnings=(seen,) if seen else (),
    )
