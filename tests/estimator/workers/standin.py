"""A stand-in for a framework, imported by templates of tests: fast, and does what it is told.

The model's name says what a fork does; what it saw is in the estimate's warnings.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import json
import os
import resource
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
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
from estimator.workers.fork import Handler, Reply
from estimator.workers.wire import Ask, Operation, decode_ask, encode_answers
from tests.estimator.cudnn.cases import A100, convolution
from tests.estimator.processes.kernels import pretend_without_landlock, pretend_without_seccomp
from tests.estimator.workers.marks import Marker

_marker: Marker | None = None


def prepare(framework: str) -> Handler:
    """Return the handler that does what the model's name says."""
    global _marker
    _marker = Marker()
    return answer


def prepare_without_landlock(framework: str) -> Handler:
    """Be a template on a kernel that has no Landlock."""
    pretend_without_landlock()
    return prepare(framework)


def prepare_without_seccomp(framework: str) -> Handler:
    """Be a template on a kernel that takes no filter."""
    pretend_without_seccomp()
    return prepare(framework)


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


def prepare_without_processes(framework: str) -> Handler:
    """Be refused forks by the system, as at a limit on the number of processes.

    The one in which a template tries what a fork may do is let through, and each second of others.
    """
    own_fork = os.fork
    refuse = itertools.cycle((False, True))

    def fork() -> int:
        if next(refuse):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return own_fork()

    os.fork = fork
    return answer


def answer(payload: bytes, plans: Edition | None) -> Reply:
    """Do what the model's name says."""
    ask = decode_ask(payload)
    if ask.operation is Operation.FIT:
        return Reply(answer=encode_answers([Fit(device=_facts(ask, 0), largest_batch=7)]))
    if ask.spec.model.name == "ask-cudnn":
        seen = _ask_cudnn(plans)
    else:
        seen = _ACTIONS[ask.spec.model.name](ask)
    later = _LATER.get(ask.spec.model.name)
    estimates = [estimate_of(ask, index, seen) for index in range(len(ask.devices))]
    return Reply(
        answer=encode_answers(estimates, may_go_on=later is not None),
        later=None if later is None else later(ask),
    )


def _ask_cudnn(plans: Edition | None) -> str:
    """Say what a convolution on an A100 is answered."""
    if plans is None:
        return json.dumps(None)
    (answer,) = plans.ask([convolution()], A100)
    found = None if answer is None else len(answer.instant)
    return json.dumps({"version": plans.version, "plans": found, "reason": plans.reason})


def _nothing(ask: Ask) -> str:
    return ""


def _kept(ask: Ask) -> str:
    """Say what was kept, and how this process stands among others."""
    return json.dumps([each.decode() for each in ask.kept])


def _pid(ask: Ask) -> str:
    return str(os.getpid())


def _meet(ask: Ask) -> str:
    """Wait until as many forks as the batch size have left a mark in the folder of the spec."""
    assert _marker is not None
    _marker.leave(str(ask.spec.model.config["folder"]))
    while _marker.num_left < ask.spec.input.batch_size:
        time.sleep(0.005)
    return str(os.getpid())


def _wait(ask: Ask) -> str:
    """Leave a mark and wait for the end."""
    if folder := ask.spec.model.config.get("folder"):
        assert _marker is not None
        _marker.leave(str(folder))
    while True:
        signal.pause()


def _spin(ask: Ask) -> str:
    while True:
        pass


def _spin_untimed(ask: Ask) -> str:
    """Escape the wall timer; processor time is left."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    return _spin(ask)


def _escape(ask: Ask) -> str:
    """Escape every timer of its own."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    return _wait(ask)


def _stick_in_c(ask: Ask) -> str:
    """Stay in C code that holds the interpreter's lock and lets no signal in."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(3600)
    raise AssertionError


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


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _surroundings(ask: Ask) -> str:
    """Say what belongs to a fork: its open files, limits and parent."""
    return json.dumps(
        {
            "sockets": sum(map(_is_socket, range(4096))),
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
    "stick-in-c": _stick_in_c,
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
    "go-on": _kept,
    "go-on-and-wait": _kept,
    "go-on-and-fail": _kept,
}


def _go_on(ask: Ask) -> Iterator[bytes]:
    """Bring one more content a fork."""
    yield f"of {os.getpid()}".encode()


def _go_on_and_wait(ask: Ask) -> Iterator[bytes]:
    yield b"first"
    yield _wait(ask).encode()


def _go_on_and_fail(ask: Ask) -> Iterator[bytes]:
    yield b"first"
    raise KeyError("a bug")


_LATER: dict[str, Callable[[Ask], Iterator[bytes]]] = {
    "go-on": _go_on,
    "go-on-and-wait": _go_on_and_wait,
    "go-on-and-fail": _go_on_and_fail,
}


def _facts(ask: Ask, index: int) -> DeviceFacts:
    device = ask.devices[index]
    return DeviceFacts(
        name=device.name, compute_capability=".".join(map(str, device.compute_capability))
    )


def estimate_of(ask: Ask, index: int, seen: str) -> Estimate:
    """Return an estimate for the device at *index*, with what was *seen* in its warnings."""
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
