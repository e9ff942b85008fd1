"""The JAX template: imports JAX and XLA's compiler, and its jailed forks compile."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from estimator.catalog import resolve_device
from estimator.spec import Framework, JobSpec, parse_spec
from estimator.workers.pool import Workers
from tests.estimator.frontends.jax_children import job, perceptron

pytestmark = [pytest.mark.jax, pytest.mark.slow]
in_module = pytest.mark.asyncio(loop_scope="module")


def _spec() -> JobSpec:
    return parse_spec(job(perceptron(), batch=64))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def jax_workers() -> AsyncIterator[Workers]:
    """Workers with the real frontend."""
    pool = Workers(max_concurrent=2)
    yield pool
    await pool.close()


@in_module
async def test_the_template_forks_after_its_whole_start_and_compiles(jax_workers: Workers) -> None:
    """One thread after everything is imported; confined forks compile, one kind of card each."""
    readiness = await jax_workers.ready(Framework.JAX)
    assert readiness.num_threads == 1
    assert readiness.confined

    cards = [resolve_device("a100-sxm4-40gb"), resolve_device("a100-sxm4-80gb")]
    first = await jax_workers.estimate(_spec(), cards)
    second = await jax_workers.estimate(_spec(), cards)

    assert [estimate.method for estimate in first] == ["compile", "compile"]
    assert [estimate.peak for estimate in first] == [estimate.peak for estimate in second]


@in_module
async def test_no_process_is_left_behind(jax_workers: Workers) -> None:
    """A compile's own processes end with the fork that asked for it."""
    await jax_workers.estimate(_spec(), [resolve_device("t4")])
    pids = jax_workers.pids()

    await jax_workers.close()

    assert pids
    assert await asyncio.to_thread(_none_left)


def _none_left() -> bool:
    """Return whether every orphan ends: the kernel ends them a moment after their parent."""
    until = time.monotonic() + 30
    while _orphans() and time.monotonic() < until:
        time.sleep(0.05)
    return not _orphans()


def _orphans() -> list[str]:
    """Return processes that are forks of a JAX template and have lost their parent.

    The first process takes them in, or the one that contains this run (`tests.contained`).
    """
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            command = (folder / "cmdline").read_bytes()
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        if b"--framework\0jax" in command and int(parent) in (1, os.getppid()):
            found.append(folder.name)
    return found
