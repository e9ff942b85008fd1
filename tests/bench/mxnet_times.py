"""How long an estimate of each model of MXNet's zoo takes: `python -m tests.bench.mxnet_times`.

    names of MXNet's zoo -> one training estimate each, of a warm template -> a table

`--all` prints every model instead of the slowest, `--batch` takes another batch than 32. The jobs
state no way to run their graph, which takes longest: both ways are traced then. Seconds of a
processor decide: they grow less than waits do while the machine is busy, but they grow.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from estimator.catalog import resolve_device
from estimator.frontends.mxnet.zoo import names
from estimator.spec import Framework, JobSpec, parse_spec
from estimator.workers.pool import Workers
from tests.bench.figures import Figure, console, figure_table, machine

CARD = "a100-sxm4-40gb"
BATCH = 32
REPEATS = 5
SHOWN = 10
MOST_SECONDS = 0.2
LOOK_SECONDS = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one estimate took."""

    name: str
    seconds: float
    """From the question to its answer."""
    used: float
    """Of a processor, by the fork that answered, its start and end included; steps of 10 ms."""


async def mxnet_figures() -> AsyncIterator[Figure]:
    """Yield the time of the slowest model of the zoo."""
    yield figure_of(await times(BATCH))


def figure_of(found: Sequence[Taken]) -> Figure:
    """Return the figure of the slowest of *found*, which comes first."""
    slowest = found[0]
    return Figure(
        name="the slowest model of MXNet's zoo, estimate",
        value=slowest.used,
        unit="s",
        high=MOST_SECONDS,
        note=f"of a processor: {slowest.name} of {len(found)}; answered in {slowest.seconds:.2f} s",
    )


async def times(batch: int) -> list[Taken]:
    """Return what each model of the zoo takes, the slowest first.

    All are asked once, then the slowest a few times more: the median of those.
    """
    workers = await _warm()
    try:
        found = [await _taken(workers, _job(name, batch)) for name in names()]
        found.sort(key=_used, reverse=True)
        again = [await _asked_again(workers, taken.name, batch) for taken in found[:SHOWN]]
    finally:
        await workers.close()
    return [*sorted(again, key=_used, reverse=True), *found[SHOWN:]]


async def _asked_again(workers: Workers, name: str, batch: int) -> Taken:
    runs = [await _taken(workers, _job(name, batch)) for _ in range(REPEATS)]
    return Taken(
        name=name,
        seconds=statistics.median(run.seconds for run in runs),
        used=statistics.median(run.used for run in runs),
    )


def _used(taken: Taken) -> float:
    return taken.used


async def _warm() -> Workers:
    """Return a pool whose template has answered once."""
    workers = Workers(preload=(Framework.MXNET,), cudnn=())
    await workers.start()
    await _taken(workers, _job(names()[0]))
    return workers


def _job(name: str, batch: int = BATCH) -> JobSpec:
    return parse_spec(
        {
            "framework": "mxnet",
            "model": {"source": "mxnet", "name": name},
            "input": {"batchSize": batch},
            "training": {"optimizer": {"name": "sgd", "momentum": 0.9}},
        }
    )


async def _taken(workers: Workers, spec: JobSpec) -> Taken:
    """Return what one estimate takes; its fork is awaited, as its time is known at its end."""
    await workers.ready(Framework.MXNET)
    template = workers.pids()[0]
    before = _used_by_children(template)
    started = time.perf_counter()
    await workers.estimate(spec, [resolve_device(CARD)])
    seconds = time.perf_counter() - started
    while _has_children(template):  # noqa: ASYNC110 (the kernel sets no event of ours)
        await asyncio.sleep(LOOK_SECONDS)
    used = _used_by_children(template) - before
    return Taken(name=spec.model.name, seconds=seconds, used=used)


def _has_children(pid: int) -> bool:
    """Return whether a child of process *pid* has not been seen to end."""
    return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text())


def _used_by_children(pid: int) -> float:
    """Return the processor time of the children that process *pid* has seen end."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 if the slowest takes longer than is asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.mxnet_times")
    parser.add_argument("--all", action="store_true", help="print every model")
    parser.add_argument("--batch", type=int, default=BATCH)
    options = parser.parse_args(arguments)
    found = asyncio.run(times(options.batch))
    screen = console()
    screen.print(machine(), soft_wrap=True)
    table = Table("model", "seconds of a processor", "seconds to the answer")
    for taken in found if options.all else found[:SHOWN]:
        table.add_row(taken.name, f"{taken.used:.2f}", f"{taken.seconds:.2f}")
    screen.print(table)
    figure = figure_of(found)
    screen.print(figure_table([figure]))
    return 0 if figure.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
