"""What is asked of reading jobs: nothing false over the corpus, and quickly.

corpus -> Figures
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from admission.detect import read_unit
from admission.workloads import read_workload
from tests.bench.figures import Figure
from tests.bench.manifests.compare import CORPUS, Case, cases, outcome_of

ROUNDS = 20
PROCESSES = 5
_OPAQUE = "03-pytorchjob-mnist-nccl"
"""A manifest that needs no estimate: what its `explain` takes is reading and start-up."""
_UNCOMPILED = "PYTHONDONTWRITEBYTECODE"
"""Set where a tree is to be left as it is: then each process would compile every module again."""


def reading_figures() -> Iterator[Figure]:
    """Yield the figures, measured one after the other."""
    found = tuple(cases())
    outcomes = [outcome_of(case) for case in found]
    yield Figure(
        name="manifests read as expected",
        value=sum(outcome.is_met for outcome in outcomes),
        unit="",
        low=len(found),
        high=len(found),
        note=f"of {len(found)} in tests/corpus",
    )
    yield Figure(
        name="manifests with a false value",
        value=sum(bool(outcome.false) for outcome in outcomes),
        unit="",
        high=0,
    )
    seconds = sorted(_seconds(case) for case in found)
    yield Figure(
        name="reading one workload, p99 over the corpus",
        value=1e3 * seconds[int(0.99 * len(seconds))],
        unit="ms",
        high=2.0,
        note=f"median of {ROUNDS} each; p50 {1e3 * seconds[len(seconds) // 2]:.2f} ms",
    )
    yield Figure(
        name="vramgate explain as a process, without an estimate",
        value=1e3 * _process_seconds(),
        unit="ms",
        high=150.0,
        note=f"{_OPAQUE}, compiled as an installation is, the fastest of {PROCESSES}",
    )


def _seconds(case: Case) -> float:
    """Return the median time to read the workload of *case* and all its units."""
    wanted = case.expected["workload"]["kind"]
    body = next(item.body for item in case.manifests.workloads if item.body["kind"] == wanted)
    documents = case.manifests.documents("")
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        workload = read_workload(body, documents=documents)
        for unit in workload.units:
            read_unit(unit, workload=workload, documents=documents)
        times.append(time.perf_counter() - started)
    return sorted(times)[ROUNDS // 2]


def _process_seconds() -> float:
    """Return how long `vramgate explain` takes on a manifest that needs no estimate.

    With its modules compiled, as installing them does; the first of the processes sees to that.
    """
    argv = [sys.executable, "-m", "admission", "explain", str(CORPUS / f"{_OPAQUE}.yaml")]
    environment = {name: value for name, value in os.environ.items() if name != _UNCOMPILED}
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(1 + PROCESSES):
            started = time.perf_counter()
            subprocess.run(
                [*argv, "--gpu", "t4", "--offline", "-o", "json"],
                check=True,
                capture_output=True,
                env={**environment, "PYTHONPYCACHEPREFIX": folder},
            )
            times.append(time.perf_counter() - started)
    return min(times[1:])
