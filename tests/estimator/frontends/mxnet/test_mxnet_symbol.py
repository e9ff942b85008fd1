"""Symbol JSON: every published spelling is read, everything else is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.errors import SpecError, UnsupportedJobError
from estimator.frontends.mxnet import symbol
from estimator.frontends.mxnet.graph import in_order
from estimator.frontends.mxnet.inference import MAX_ELEMENTS, infer
from estimator.frontends.mxnet.symbol import MAX_NODES, read_symbol
from estimator.notes import UnknownCode

WEIGHTS: list[dict[str, Any]] = [
    {"op": "null", "name": name, "inputs": []} for name in ("data", "weight", "bias")
]


def dense(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return a symbol of one fully connected layer whose node has *attributes* beside its own."""
    inputs = [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    node = {"op": "FullyConnected", "name": "fc", "inputs": inputs, **attributes}
    return {"nodes": [*WEIGHTS, node], "heads": [[3, 0, 0]]}


@pytest.mark.parametrize("key", ["attrs", "attr", "param"])
def test_each_published_spelling_of_attributes_is_read(key: str) -> None:
    """MXNet 1.x writes `attrs`, 0.9 to 0.12 `attr`, 0.8 and earlier `param`."""
    heads = read_symbol(dense({key: {"num_hidden": "5"}}))

    infer(in_order(heads), {"data": (4, 3)}, {})

    assert heads[0].shape == (4, 5)


def test_an_old_entry_without_output_or_version_is_read() -> None:
    """The first format has entries of one or two numbers, and long integers of Python 2."""
    document = {
        "nodes": [
            WEIGHTS[0],
            {
                "op": "Pooling",
                "name": "pool",
                "param": {"kernel": "(2L,2L)", "stride": "(2L, 2L)", "pool_type": "avg"},
                "inputs": [[0]],
            },
        ],
        "heads": [[1, 0]],
    }

    heads = read_symbol(document)
    infer(in_order(heads), {"data": (1, 3, 8, 8)}, {})

    assert heads[0].shape == (1, 3, 4, 4)


def test_an_unknown_operator_is_named_with_its_node() -> None:
    """Nothing is taken for zero: the refusal says which operator, at which node."""
    document = dense({})
    document["nodes"][3] |= {"op": "FancyAttention", "name": "attention_7"}

    with pytest.raises(UnsupportedJobError, match=r"'FancyAttention'.*'attention_7'") as caught:
        read_symbol(document)

    assert caught.value.code is UnknownCode.OPERATOR


def test_an_operator_without_gradient_is_named_when_it_is_trained() -> None:
    """A graph that MXNet itself could not differentiate is refused."""
    from tests.estimator.frontends.mxnet.binding import bound_of

    nodes = [
        WEIGHTS[0],
        {"op": "null", "name": "weight", "attrs": {"__shape__": "(4, 3)"}, "inputs": []},
        {"op": "elemwise_mul", "name": "mul", "inputs": [[0, 0, 0], [1, 0, 0]]},
        {"op": "argmax_channel", "name": "best", "inputs": [[2, 0, 0]]},
    ]

    with pytest.raises(UnsupportedJobError, match=r"'argmax_channel'.*has no gradient"):
        bound_of({"nodes": nodes, "heads": [[3, 0, 0]]}, {"data": (4, 3)})


def test_a_cycle_is_refused() -> None:
    """Nodes are written after what they read: one that reads a later node is a cycle."""
    document = dense({"attrs": {"num_hidden": "5"}})
    document["nodes"][3]["inputs"] = [[3, 0, 0], [1, 0, 0], [2, 0, 0]]

    with pytest.raises(SpecError, match="node 3 comes later, which makes a cycle"):
        read_symbol(document)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "not a symbol"),
        ({"nodes": {}, "heads": []}, "not a symbol"),
        ({"nodes": [], "heads": [[0, 0, 0]]}, "a symbol of 0 nodes"),
        ({"nodes": [WEIGHTS[0]] * (MAX_NODES + 1), "heads": [[0]]}, "50001 nodes"),
        ({"nodes": ["data"], "heads": [[0]]}, r"nodes\[0\] is not a mapping"),
        ({"nodes": [{"op": 1, "name": "x"}], "heads": [[0]]}, "no 'op' and 'name'"),
        ({"nodes": [WEIGHTS[0]], "heads": [[1, 0]]}, "node 1 comes later"),
        ({"nodes": [WEIGHTS[0]], "heads": [[0, 2]]}, "no output 2"),
        ({"nodes": [WEIGHTS[0]], "heads": [[0, -1]]}, "whole numbers"),
        ({"nodes": [WEIGHTS[0]], "heads": [["a", 0]]}, "whole numbers"),
        ({"nodes": [WEIGHTS[0]], "heads": [True]}, "a list of node and output"),
        ({"nodes": [WEIGHTS[0] | {"inputs": 3}], "heads": [[0]]}, "no list"),
        (dense({"attrs": {"num_hidden": 5}}), "not a text"),
        (dense({"attrs": {"num_hidden": "9" * 5000}}), "not a text"),
        (dense({"attrs": ["num_hidden"]}), "not a mapping"),
        (dense({"attrs": {str(index): "1" for index in range(65)}}), "at most 64"),
    ],
)
def test_what_is_not_a_symbol_is_refused(document: dict[str, Any], said: str) -> None:
    """A refusal names the place and what was wrong with it."""
    with pytest.raises(SpecError, match=said):
        read_symbol(document)


@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        ("five", "attribute 'num_hidden' of node 'fc' is 'five'; takes a whole number"),
        ("", "attribute 'num_hidden' of node 'fc' is ''"),
        (str(MAX_ELEMENTS), "at most 1099511627776 elements"),
        ("-3", "would be of shape"),
    ],
)
def test_an_odd_or_absurd_size_is_refused(hidden: str, said: str) -> None:
    """Every number that becomes a size has a bound."""
    heads = read_symbol(dense({"attrs": {"num_hidden": hidden}}))

    with pytest.raises(SpecError, match=said):
        infer(in_order(heads), {"data": (4, 3)}, {})


def test_shapes_that_do_not_go_together_are_refused_with_the_node() -> None:
    """A weight that is stated of another shape than its data needs is an error of the symbol."""
    document = dense({"attrs": {"num_hidden": "5"}})
    document["nodes"][1] = {**WEIGHTS[1], "attrs": {"__shape__": "(5, 4)"}}
    heads = read_symbol(document)

    with pytest.raises(SpecError, match=r"node 'fc' .*wants 'weight' of shape \(5, 3\)"):
        infer(in_order(heads), {"data": (4, 3)}, {})


def test_a_shape_nobody_knows_is_asked_for() -> None:
    """The refusal names the input and where its shape can be given."""
    heads = read_symbol(dense({"attrs": {"num_hidden": "5"}}))

    with pytest.raises(SpecError, match=r"the shape of 'data'.*cannot be known") as caught:
        infer(in_order(heads), {}, {})

    assert "model.options.shapes" in (caught.value.hint or "")


def test_a_long_chain_does_not_nest() -> None:
    """A graph as deep as it is long is read and ordered without recursion."""
    length = 5_000
    nodes = [WEIGHTS[0]] + [
        {"op": "relu", "name": f"r{index}", "inputs": [[index, 0, 0]]} for index in range(length)
    ]

    heads = read_symbol({"nodes": nodes, "heads": [[length, 0, 0]]})
    infer(in_order(heads), {"data": (1, 1)}, {})

    assert len(in_order(heads)) == length + 1


def test_many_outputs_are_refused() -> None:
    """A split into a million parts is no model."""
    node = {"op": "split", "name": "s", "attrs": {"num_outputs": "1000000"}, "inputs": [[0]]}

    with pytest.raises(SpecError, match="has 1000000 outputs"):
        read_symbol({"nodes": [WEIGHTS[0], node], "heads": [[1, 0]]})

    assert symbol.MAX_OUTPUTS < 1_000_000
