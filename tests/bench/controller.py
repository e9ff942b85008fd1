"""What the controller costs in a large cluster, and how soon it acts on a death.

    5,000 nodes, 20,000 pods, some of which die -> memory, seconds, writes

The API server is one in memory (`large_cluster`): what a real one takes is not in it. The first
death is not counted: it waits for a worker to import PyTorch.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figures import Figure, resident_mib, used_seconds
from tests.bench.large_cluster import LargeCluster
from tests.e2e.controller.process import Controller, running
from tests.e2e.processes import poll_until

NUM_NODES, NUM_PODS = 5000, 20_000
NUM_DEATHS = 20
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
    " capacity of 14.58 GiB of which 1.10 GiB is free."
)
MOST_MIB, MOST_SECONDS = 400.0, 2.0
STARTING_SECONDS, ACTING_SECONDS = 300.0, 180.0


def controller_figures() -> Iterator[Figure]:
    """Yield the memory, the time from a death to the last write about it, and their number."""
    cluster = LargeCluster(nodes=NUM_NODES, pods=NUM_PODS)
    with tempfile.TemporaryDirectory(prefix="vramgate-bench-") as name:
        folder = Path(name)
        with cluster.serving(folder) as kubeconfig:
            made = Controller(
                directory=folder, kubeconfig=kubeconfig, settings={"leaseSeconds": 60.0}
            )
            with running(made):
                yield from _measured(made, cluster)


def _measured(controller: Controller, cluster: LargeCluster) -> Iterator[Figure]:
    started = time.monotonic()
    poll_until(lambda: _is_settled(controller), what="all to be known", seconds=STARTING_SECONDS)
    note = f"{NUM_NODES} nodes, {NUM_PODS} pods, {cluster.num_jobs} Jobs"
    yield Figure(
        name="controller: resident, once all is known",
        value=resident_mib(controller.pid),
        unit="MiB",
        high=MOST_MIB,
        note=f"{note}, known after {time.monotonic() - started:.0f} s",
    )
    assert cluster.writes == [], cluster.writes[:5]
    _acted(cluster, 0)
    before = used_seconds(controller.pid)
    taken = [_acted(cluster, number) for number in range(1, NUM_DEATHS + 1)]
    used = (used_seconds(controller.pid) - before) / NUM_DEATHS
    yield Figure(
        name="controller: a death to the last write about it, longest",
        value=max(seconds for seconds, _ in taken),
        unit="s",
        high=MOST_SECONDS,
        note=f"{NUM_DEATHS} deaths, median {statistics.median(s for s, _ in taken):.2f} s,"
        f" {1000 * used:.0f} ms of processor time each",
    )
    yield Figure(
        name="controller: writes to one object for one death, most",
        value=max(most for _, most in taken),
        unit="",
        high=1,
        note="an Event about it, one patch, one entry for the webhook",
    )
    yield Figure(
        name="controller: resident, after the deaths",
        value=resident_mib(controller.pid),
        unit="MiB",
        high=MOST_MIB,
    )


def _is_settled(controller: Controller) -> bool:
    return (
        controller.leads()
        and controller.value("vramgate_class_predicted_bytes", state="running") > 0
        and controller.value("vramgate_controller_queue") == 0
    )


def _acted(cluster: LargeCluster, number: int) -> tuple[float, int]:
    """Let one pod of Job *number* die; return how long it took, and the most writes to one path."""
    known = len(cluster.writes)
    died = cluster.dies(4 * number, OUT_OF_MEMORY)
    job = f"/jobs/train-{number}"

    def is_told() -> bool:
        return any(path.endswith(job) for _, _, path in cluster.writes[known:])

    poll_until(is_told, what="what is done about a death", seconds=ACTING_SECONDS)
    found = cluster.writes[known:]
    paths = [(method, path) for _, method, path in found]
    return max(at for at, _, _ in found) - died, max(map(paths.count, paths))
