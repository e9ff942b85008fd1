"""How long thousands of nodes take, from the API server's bytes to classes, and what they hold."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator

import orjson

from admission.capacity.classes import classes_of
from admission.cluster import PAGE, cut_node
from admission.values import Json, NodeClass
from tests.bench.figures import Figure
from tests.builders import gpu_labels, node

NUM_NODES = 5000
NUM_OTHER_LABELS = 40
NUM_IMAGES = 50
MOST_SECONDS, MOST_MIB = 1.0, 50.0


def node_figures() -> Iterator[Figure]:
    """Yield the time and the memory of 5,000 nodes of two kinds."""
    pages = list(_pages())
    started = time.perf_counter()
    nodes, classes = _load(pages)
    seconds = time.perf_counter() - started
    assert [found.count for found in classes] == [NUM_NODES // 2] * 2
    del nodes, classes
    tracemalloc.start()
    kept = _load(pages)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    note = f"{sum(map(len, pages)) >> 20} MiB of JSON"
    yield Figure(
        name=f"{NUM_NODES} nodes to classes", value=seconds, unit="s", high=MOST_SECONDS, note=note
    )
    yield Figure(name=f"{NUM_NODES} nodes held", value=held / (1 << 20), unit="MiB", high=MOST_MIB)


def _load(pages: list[bytes]) -> tuple[dict[str, Json], tuple[NodeClass, ...]]:
    """Return what `serve` keeps of a list that arrives in pages."""
    nodes: dict[str, Json] = {}
    for page in pages:
        for item in orjson.loads(page)["items"]:
            kept = cut_node(item)
            nodes[kept["metadata"]["name"]] = kept
    return nodes, classes_of(nodes.values())


def _pages() -> Iterator[bytes]:
    for first in range(0, NUM_NODES, PAGE):
        yield orjson.dumps({"items": [node_of(index) for index in range(first, first + PAGE)]})


def node_of(index: int) -> Json:
    """Return a node with the labels of a pool, some of its own, and what is not kept."""
    kinds = (
        gpu_labels(),
        gpu_labels(product="NVIDIA-A100-SXM4-80GB", memory="81920", compute=(8, 0)),
    )
    labels = kinds[index % 2] | {"example.com/uid": f"uid-{index}"}
    for number in range(NUM_OTHER_LABELS):
        labels[f"example.com/label-{number}"] = f"value-{number}-{index % 4}"
    found = node(f"node-{index:05}", labels=labels)
    found["metadata"]["annotations"] = {"example.com/text": "x" * 500}
    found["status"]["images"] = [
        {"names": [f"registry.example/{number}@sha256:{'0' * 64}"], "sizeBytes": number}
        for number in range(NUM_IMAGES)
    ]
    return found
