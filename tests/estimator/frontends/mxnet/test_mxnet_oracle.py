"""Our planner against MXNet itself: every graph node by node, every total."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from estimator.frontends.mxnet.fusion import VARIABLE
from estimator.frontends.mxnet.zoo import names, zoo_model
from estimator.trace import Role
from estimator.units import MIB
from tests.estimator.frontends.mxnet.binding import bound_of, named_alike, rows_of
from tests.estimator.frontends.mxnet.families import FAMILIES
from tests.estimator.frontends.mxnet.jobs import live_peak, traced
from tests.estimator.frontends.mxnet.oracle import Oracle
from tests.sweeping import spread

pytestmark = pytest.mark.mxnet

BATCHES = (1, 7, 64, 2048)
"""At 2,048 a MiB is 512 bytes a sample. Larger tensors than that MXNet's wheels do not plan."""
CASE_BATCHES = (4, 1 << 16)
BATCH = "batch"
MODES = {"imperative": False, "hybrid": {"mode": "hybridize"}, "static": {"mode": "static"}}
LOOP = ("mobilenet0.25", 8, 64)


def _as_written(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a shipped graph as MXNet writes one."""
    nodes = [
        {**node, "inputs": [[*entry, 0] for entry in node["inputs"]]} for node in document["nodes"]
    ]
    return {
        "nodes": nodes,
        "heads": [[*head, 0] for head in document["heads"]],
        "arg_nodes": [index for index, node in enumerate(nodes) if node["op"] == "null"],
    }


@pytest.mark.parametrize("name", spread(names(), of=FAMILIES))
def test_every_graph_of_the_zoo_is_bound_and_planned_as_mxnet_does(
    oracle: Oracle, name: str
) -> None:
    """Nodes, what they read, shapes and the total are MXNet's own, at four batches."""
    model = zoo_model(name, None)
    has_label = any(node["name"] == "softmax_label" for node in model.document["nodes"])
    for batch in BATCHES:
        shapes: dict[str, tuple[int, ...]] = {"data": (batch, *model.image)}
        if has_label:
            shapes["softmax_label"] = (batch,)
        theirs = oracle.plan(_as_written(model.document), shapes)

        ours = bound_of(model.document, shapes)

        assert named_alike(rows_of(ours)) == named_alike(theirs.nodes)
        assert ours.whole_plan().total // MIB == theirs.megabytes


def test_every_operator_is_planned_as_mxnet_does(oracle: Oracle) -> None:
    """Gradients, shapes and what may share memory are MXNet's own, small and large."""
    cases = oracle.run("oracle_symbols.py")
    differing = []
    for case in cases:
        for batch in CASE_BATCHES:
            shapes = {
                name: [batch if size == BATCH else size for size in sizes]
                for name, sizes in case["shapes"].items()
            }
            document = json.loads(case["symbol"])
            theirs = oracle.plan(document, shapes, case["types"])
            ours = bound_of(document, shapes, case["types"])
            same_graph = named_alike(rows_of(ours)) == named_alike(theirs.nodes)
            if not same_graph or ours.whole_plan().total // MIB != theirs.megabytes:
                differing.append((case["name"], batch))

    assert len(cases) > 250
    assert differing == []


def test_a_gluon_loop_holds_what_mxnet_holds_in_each_of_its_modes(oracle: Oracle) -> None:
    """Beside scratch memory, which is the same in all, three modes need what ours need."""
    name, batch, size = LOOP
    beside = []
    for mode, compile_ in MODES.items():
        measured = oracle.run("oracle_loop.py", name, mode, str(batch), str(size)) * 1000
        trace = traced(
            name=name,
            classes=10,
            batch=batch,
            image=(3, size, size),
            compile_=compile_,
            env={VARIABLE: "0"},
        )
        beside.append(measured - live_peak(trace, without=Role.WORKSPACE))

    assert max(beside) - min(beside) < 0.002 * measured
    assert 0 <= min(beside) < 0.05 * measured
