"""What `/metrics` of `serve` weighs in a large cluster, and what it takes to write.

5,000 nodes, each of a kind of its own -> bytes, milliseconds of a processor
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry

from admission.metrics import Metrics
from tests.bench.figures import Figure
from tests.builders import node_class

NUM_NODES = 5000
MOST_KB, MOST_MS = 100.0, 20.0
TRIES = 20


def exposition_figures() -> Iterator[Figure]:
    """Yield the size of the exposition and the time of one, without the names of jobs."""
    metrics = Metrics(CollectorRegistry())
    metrics.classes(
        node_class(f"NVIDIA-A100-SXM4-80GB-{number:04}-MIG-3g.40gb", gpus=8)
        for number in range(NUM_NODES)
    )
    taken = []
    for _ in range(TRIES):
        began = time.process_time()
        text = metrics.text()
        taken.append(1000 * (time.process_time() - began))
    note = f"{NUM_NODES} nodes, each of a kind of its own"
    name = "/metrics of serve"
    yield Figure(name=f"{name}, size", value=len(text) / 1000, unit="kB", high=MOST_KB, note=note)
    yield Figure(
        name=f"{name}, of a processor", value=min(taken), unit="ms", high=MOST_MS, note=note
    )
