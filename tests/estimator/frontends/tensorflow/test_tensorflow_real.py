"""The executor and the allocator against TensorFlow's own, run on the CPU."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from estimator.allocators.bfc import BfcAllocator, BfcSettings
from estimator.trace import EventKind, Trace
from estimator.units import KIB, round_up
from tests.estimator.frontends.jax_server import InChild
from tests.estimator.frontends.tensorflow import children
from tests.estimator.frontends.tensorflow.jobs import job, mixed, perceptron, recurrent
from tests.estimator.frontends.tensorflow.real import records_of
from tests.sweeping import spread

pytestmark = pytest.mark.tensorflow

SMALL = 1 * KIB
"""Below this a tensor may be a shape or a counter, which a card's kernels keep on the host."""


FED = (128 * 64 * 4, 128 * 20 * 8 * 4)
"""Bytes of the batches."""


def made_in_last_step(trace: Trace) -> list[tuple[bool, int]]:
    """Return whether it is freed, and the bytes, of every event of the second step."""
    return [
        (kind == EventKind.FREE, trace.sizes[tensor])
        for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True)
        if kind in (EventKind.ALLOC, EventKind.FREE)
        and trace.place_table[place].step == 2
        and trace.place_table[place].operator != "input"
    ]


def recorded(records: list[dict[str, Any]]) -> list[tuple[bool, int]]:
    """Return the same of what TensorFlow's allocator did."""
    return [(each["is_free"], each["requested_bytes"]) for each in records]


def sizes(events: list[tuple[bool, int]]) -> Counter[int]:
    """Return how often each size is allocated, but for the batch: a session may copy what it is
    fed, depending on where it lies."""
    return Counter(
        nbytes
        for is_free, nbytes in events
        if not is_free and nbytes >= SMALL and nbytes not in FED
    )


def peak(events: list[tuple[bool, int]]) -> int:
    """Return the most bytes alive above those before."""
    live = most = 0
    for is_free, nbytes in events:
        live += round_up(nbytes, 256) * (-1 if is_free else 1)
        most = max(most, live)
    return most


@pytest.mark.parametrize("optimizer", spread(["sgd", "adam", "rmsprop"], of=["adam"]))
def test_a_step_allocates_what_the_real_executor_does(
    in_tensorflow_child: InChild, tmp_path: Path, optimizer: str
) -> None:
    """Every tensor, aliases and buffers written over included: as often, and as many at once."""
    document = job(mixed(), 128, training={"optimizer": {"name": optimizer}})

    events = made_in_last_step(in_tensorflow_child(children.trace, document))
    real = recorded(records_of("real_step.py", document, tmp_path))

    assert sizes(events) == sizes(real)
    assert peak(events) == pytest.approx(peak(real), abs=2 * KIB + FED[0])


def test_loops_collect_and_give_back_as_the_real_executor_does(
    in_tensorflow_child: InChild, tmp_path: Path
) -> None:
    """Bodies of recurrent layers run once a time step, and what they push is read backwards.

    One sum in each turn of the backward loop is written in place here and is not there.
    """
    document = job(recurrent(), 128, training={"optimizer": {"name": "sgd"}})

    events = made_in_last_step(in_tensorflow_child(children.trace, document))
    real = recorded(records_of("real_step.py", document, tmp_path))

    differing = (sizes(events) - sizes(real)) + (sizes(real) - sizes(events))
    assert differing.total() <= 0.03 * sizes(real).total()
    assert peak(events) == pytest.approx(peak(real), rel=0.03)


@pytest.mark.parametrize("threshold", ["65536", "1073741824"])
def test_the_allocator_gives_every_chunk_the_real_one_gives(tmp_path: Path, threshold: str) -> None:
    """From a process' first allocation on: the chunk's address and size, and bytes in use.

    The second region lies below the first if the C library maps every large block for itself,
    and above it if it takes them from its heap. Of two equal chunks the lower is taken, so the
    regions' places are given to the model as they were.
    """
    document = {
        "config": perceptron(64, 256, 512, 10),
        "optimizer": "adam",
        "inputs": [128, 64],
        "labels": [128],
        "steps": 3,
    }
    environment = {"MALLOC_MMAP_THRESHOLD_": threshold}

    records = records_of("real_run.py", document, tmp_path, environment, from_the_first=True)
    given: dict[str, int] = {}
    allocator = BfcAllocator(
        BfcSettings(allow_growth=True, garbage_collection=False),
        region_address=lambda _: given["addr"],
    )
    live: dict[int, int] = {}
    differing = []
    for number, record in enumerate(records):
        if record["is_free"]:
            allocator.free(live.pop(record["addr"]))
            chunk = record["addr"]
        else:
            given["addr"] = record["addr"]
            before = allocator.allocated
            assert allocator.allocate(number, record["requested_bytes"])
            live[record["addr"]] = number
            chunk = allocator.address_of(number)
            assert allocator.allocated - before == record["allocation_bytes"], number
        if (chunk, allocator.allocated) != (record["addr"], record["bytes_allocated"]):
            differing.append(number)

    assert len(records) > 1000
    assert allocator.num_regions_opened > 1
    assert differing == []
