"""A process that has imported one frontend, and forks for every call.

function, arguments -> result of a fork, as in a worker
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import pytest

from estimator.workers.environment import template_environment

TIME_LIMIT_SECONDS = 240

InChild = Callable[..., Any]


@pytest.fixture(scope="session")
def in_jax_child() -> Iterator[InChild]:
    """Return a caller of functions, each in a fork of one process that has the frontend."""
    yield from served("jax")


def served(framework: str) -> Iterator[InChild]:
    """Yield a caller of functions, each in a fork of a process with *framework*'s frontend."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    before = dict(os.environ)
    os.environ.update(template_environment(before))
    server = context.Process(target=_serve, args=(theirs, framework))
    server.start()
    os.environ.clear()
    os.environ.update(before)
    theirs.close()

    def run(function: Callable[..., Any], *arguments: Any) -> Any:
        ours.send((function, arguments))
        if not ours.poll(TIME_LIMIT_SECONDS):
            raise TimeoutError(f"{function.__name__} took over {TIME_LIMIT_SECONDS} s")
        good, value = ours.recv()
        if not good:
            raise AssertionError(value)
        return value

    yield run
    server.kill()
    server.join()


def _serve(connection: Connection, framework: str) -> None:
    from estimator.frontends import load

    load(framework)
    while True:
        function, arguments = connection.recv()
        pid = os.fork()
        if pid == 0:
            _answer(connection, function, arguments)
        _, status = os.waitpid(pid, 0)
        if status:
            connection.send((False, f"the fork ended with {status}"))


def _answer(connection: Connection, function: Callable[..., Any], arguments: Any) -> None:
    status = 1
    try:
        try:
            connection.send((True, function(*arguments)))
        except Exception as error:
            connection.send((False, f"{type(error).__name__}: {error}"))
        status = 0
    finally:
        os._exit(status)
