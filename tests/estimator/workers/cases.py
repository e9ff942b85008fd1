"""Builders and waits for the tests of the workers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from estimator.device import Device
from estimator.spec import JobSpec, parse_spec
from estimator.workers.limits import Limits
from estimator.workers.pool import Workers

STANDIN = "tests.estimator.workers.standin"
CARD = Device(
    name="card",
    total_bytes=100,
    reservation_bytes=1,
    budget_bytes=99,
    compute_capability=(8, 0),
)


def spec_of(
    action: str,
    *,
    config: Mapping[str, object] | None = None,
    batch_size: int = 1,
    framework: str = "pytorch",
) -> JobSpec:
    """Return a spec that tells the stand-in what to do."""
    return parse_spec(
        {
            "framework": framework,
            "model": {"source": "layers", "name": action, "config": dict(config or {})},
            "input": {"batchSize": batch_size},
        }
    )


def workers_of(
    limits: Limits | None = None,
    *,
    prepare: str = "prepare",
    max_concurrent: int = 2,
    cudnn: Sequence[Path] = (),
) -> Workers:
    """Return a pool whose templates import the stand-in, without a cuDNN to ask."""
    return Workers(
        limits, max_concurrent=max_concurrent, prepare=f"{STANDIN}:{prepare}", cudnn=cudnn
    )


async def until(condition: Callable[[], bool], *, seconds: float = 20.0) -> None:
    """Wait until *condition* holds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 (other processes set no event)
            await asyncio.sleep(0.005)


def marks(folder: Path) -> tuple[int, ...]:
    """Return the process ids of the forks that left their mark in *folder*."""
    return tuple(int(path.name) for path in folder.iterdir())


def is_process(pid: int) -> bool:
    """Return whether *pid* is a process that has not ended."""
    return state_of(pid) not in ("", "Z", "X")


def state_of(pid: int) -> str:
    """Return the letter of a process's state, empty if there is no such process (proc(5))."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children_of(pid: int) -> tuple[int, ...]:
    """Return the children of *pid*, those that have ended but were not reaped among them."""
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208
        try:
            stat = Path(f"/proc/{entry}/stat").read_text() if entry.isdigit() else ""
        except (FileNotFoundError, ProcessLookupError):
            continue
        if stat and int(stat.rpartition(")")[2].split()[1]) == pid:
            found.append(int(entry))
    return tuple(found)
