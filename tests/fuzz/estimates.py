"""Specs that no one would run, through templates and forks: an answer or a refusal, in time.

    python -m tests.fuzz.estimates [--specs 300] [--seed 1] [--framework pytorch]…

    seed -> JobSpec -> Estimate | EstimatorError; a TraceError, which is "our bug", is a finding

Sizes are huge, layers are a million, configurations say what no model has; steps in files are
those of `modules.py`. Exit 1 on findings: a fault of ours, or more time than a fork has.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from estimator.catalog import resolve_device
from estimator.errors import EstimatorError, SpecError, TraceError
from estimator.spec import JobSpec, parse_spec
from estimator.workers.limits import Limits
from estimator.workers.pool import Workers
from tests.bench.figures import console, machine
from tests.fuzz.choices import Choices
from tests.fuzz.estimated_specs import FRAMEWORKS, document_of
from tests.fuzz.modules import texts

WALL_SECONDS = 30.0
SLACK_SECONDS = 30.0
"""For a machine with other things to do."""


@dataclass(slots=True)
class Tally:
    """What came of all specs."""

    ends: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    findings: list[str] = field(default_factory=list)

    def add(self, name: str, end: str, seconds: float, *, is_finding: bool) -> None:
        """Note how *name* ended."""
        self.ends[end] += 1
        self.slowest = max(self.slowest, (seconds, name))
        if is_finding or seconds > WALL_SECONDS + SLACK_SECONDS:
            self.findings.append(f"{name}: {end} after {seconds:.1f} s")


def jobs(*, count: int, seed: int, frameworks: list[str]) -> Iterator[tuple[str, JobSpec]]:
    """Yield *count* valid specs of each framework, each with a name to find it by."""
    for framework in frameworks:
        made = number = 0
        while made < count:
            number += 1
            chosen = random.Random(f"{framework} {seed} {number}")
            document = document_of(framework, Choices(chosen.randbytes(400)))
            try:
                spec = parse_spec(document)
            except SpecError:
                continue
            made += 1
            yield f"{framework} {number}", spec


def first(framework: str) -> JobSpec:
    """Return a job that is refused as soon as its template has started."""
    model = {"source": "keras", "name": "nonsense"}
    return parse_spec({"framework": framework, "model": model, "input": {"batchSize": 1}})


def modules() -> Iterator[tuple[str, JobSpec]]:
    """Yield jobs of steps in files."""
    for name, content in texts():
        text = base64.b64encode(content).decode()
        yield (
            name,
            parse_spec(
                {
                    "framework": "jax",
                    "model": {
                        "source": "file",
                        "name": "step",
                        "config": {"format": "stablehlo", "content": text},
                    },
                    "input": {"batchSize": 1},
                }
            ),
        )


async def tried(workers: Workers, name: str, spec: JobSpec, tally: Tally) -> None:
    """Estimate *spec* and note how it ended."""
    started = time.monotonic()
    cards = [resolve_device("a100-sxm4-40gb"), resolve_device("t4")]
    is_finding = False
    try:
        await workers.estimate(spec, cards)
        end = "estimated"
    except TraceError as error:
        end, is_finding = f"TraceError {error.message[:300]}", True
    except EstimatorError as error:
        end = type(error).__name__
        tally.said[f"{end}: {error.message[:110]}"] += 1
        is_finding = not error.message or "Traceback" in error.message
    except Exception as error:
        end, is_finding = f"{type(error).__name__} {error}"[:300], True
    tally.add(name, end, time.monotonic() - started, is_finding=is_finding)


async def run(*, count: int, seed: int, frameworks: list[str]) -> Tally:
    """Try all of them, two at a time."""
    tally = Tally()
    workers = Workers(Limits(wall_seconds=WALL_SECONDS), max_concurrent=2)
    slots = asyncio.Semaphore(2)

    async def one(name: str, spec: JobSpec) -> None:
        async with slots:
            await tried(workers, name, spec, tally)

    try:
        for framework in frameworks:  # a template's start is none of a spec's time
            await tried(workers, framework, first(framework), Tally())
        todo = list(jobs(count=count, seed=seed, frameworks=frameworks))
        if "jax" in frameworks:
            todo += list(modules())
        await asyncio.gather(*(one(name, spec) for name, spec in todo))
    finally:
        await workers.close()
    return tally


def main() -> int:
    """Try them and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.estimates", description=__doc__)
    parser.add_argument("--specs", type=int, default=300, help="how many a framework")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--framework", action="append", choices=FRAMEWORKS)
    parser.add_argument("--verbose", action="store_true", help="print every refusal")
    asked = parser.parse_args()
    frameworks = asked.framework or list(FRAMEWORKS)
    tally = asyncio.run(run(count=asked.specs, seed=asked.seed, frameworks=frameworks))
    screen = console()
    screen.print(machine(), soft_wrap=True)
    screen.print(f"seed {asked.seed}, {asked.specs} specs each of {', '.join(frameworks)}")
    for end, number in tally.ends.most_common():
        screen.print(f"{number:6d}  {end}", markup=False, soft_wrap=True)
    if asked.verbose:
        for said, number in tally.said.most_common():
            screen.print(f"{number:6d}  {said}", markup=False, soft_wrap=True)
    screen.print(f"slowest: {tally.slowest[1]}, {tally.slowest[0]:.1f} s")
    for finding in tally.findings:
        screen.print(finding, markup=False, soft_wrap=True)
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
