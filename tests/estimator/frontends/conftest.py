"""A child process for everything that imports torch.

function, arguments -> result of a fork made after the import
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import pytest

from tests.estimator.frontends.jax_server import in_jax_child

TIME_LIMIT_SECONDS = 240
ASKED = tuple(
    f"tests.estimator.{folder}.children" for folder in ("frontends", "layering", "sharding")
)

__all__ = ["in_child", "in_jax_child"]

InChild = Callable[..., Any]


@pytest.fixture(scope="session")
def in_child() -> InChild:
    """Return a caller of `children` functions, each in a fork of one process that has torch."""
    context = multiprocessing.get_context("forkserver")
    # A fork imports anew what the process it comes of has not: the module of the functions, and
    # pytest, which is the main module of the process that asks (multiprocessing.spawn.prepare).
    context.set_forkserver_preload(["estimator.frontends.pytorch", "pytest", *ASKED])

    def run(function: Callable[..., Any], *arguments: Any) -> Any:
        receiving, sending = context.Pipe(duplex=False)
        child = context.Process(target=_answer, args=(sending, function, arguments))
        child.start()
        sending.close()
        try:
            if not receiving.poll(TIME_LIMIT_SECONDS):
                raise TimeoutError(f"{function.__name__} took over {TIME_LIMIT_SECONDS} s")
            good, value = receiving.recv()
        finally:
            child.kill()
            child.join()
        if not good:
            raise AssertionError(value)
        return value

    return run


def _answer(sending: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        sending.send((True, function(*arguments)))
    except Exception as error:
        sending.send((False, f"{type(error).__name__}: {error}"))
