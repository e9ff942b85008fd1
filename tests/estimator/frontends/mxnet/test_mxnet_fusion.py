"""Element-wise chains that a GPU runs as one."""

from __future__ import annotations

from typing import Any

from estimator.frontends.mxnet import fusion
from estimator.frontends.mxnet.fusion import FUSED, fused, is_fused
from estimator.frontends.mxnet.graph import Entry, Node
from tests.estimator.frontends.mxnet.binding import bound_of


def chain(*operators: str) -> dict[str, Any]:
    """Return a symbol of a weight times the data, then one operator after another, then a loss."""
    nodes: list[dict[str, Any]] = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "weight", "attrs": {"__shape__": "(1, 8)"}, "inputs": []},
        {"op": "broadcast_mul", "name": "mul", "inputs": [[0, 0, 0], [1, 0, 0]]},
    ]
    for index, operator in enumerate(operators):
        nodes.append({"op": operator, "name": f"op{index}", "inputs": [[len(nodes) - 1, 0, 0]]})
    nodes.append({"op": "make_loss", "name": "loss", "inputs": [[len(nodes) - 1, 0, 0]]})
    return {"nodes": nodes, "heads": [[len(nodes) - 1, 0, 0]]}


def test_a_chain_is_one_node_and_what_lies_between_is_gone() -> None:
    """Three operators that keep nothing between them become one."""
    bound = bound_of(chain("floor", "ceil", "sign"), {"data": (4, 8)})

    forward = [node.operator for node in fused(bound).forward if not node.is_variable]

    assert forward == ["broadcast_mul", FUSED, "make_loss"]


def test_a_single_operator_stays_as_it_is() -> None:
    """Only two or more are a chain."""
    bound = bound_of(chain("tanh"), {"data": (4, 8)})

    assert all(node.operator != FUSED for node in fused(bound).forward)


def test_a_node_that_reads_a_chain_through_another_does_not_join_it() -> None:
    """Joining would make a cycle: sum -> softmax outside -> back into the chain."""
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "weight", "attrs": {"__shape__": "(1, 8)"}, "inputs": []},
        {"op": "broadcast_mul", "name": "mul", "inputs": [[0, 0, 0], [1, 0, 0]]},
        {"op": "sin", "name": "first", "inputs": [[2, 0, 0]]},
        {"op": "softmax", "name": "outside", "inputs": [[3, 0, 0]]},
        {"op": "elemwise_add", "name": "last", "inputs": [[3, 0, 0], [4, 0, 0]]},
        {"op": "make_loss", "name": "loss", "inputs": [[5, 0, 0]]},
    ]
    found = fused(bound_of({"nodes": nodes, "heads": [[6, 0, 0]]}, {"data": (4, 8)}))

    place = {id(node): index for index, node in enumerate(found.order)}
    assert {"sin", "elemwise_add"} <= {node.operator for node in found.forward}
    assert all(
        place[id(entry.node)] < place[id(node)] for node in found.order for entry in node.inputs
    )


def test_forward_and_backward_are_not_fused_with_each_other() -> None:
    """A fused node is all forward or all backward."""
    bound = fused(bound_of(chain("sin", "tanh", "exp", "sqrt"), {"data": (4, 8)}))

    assert all(not node.is_backward for node in bound.forward)
    assert sum(node.operator == FUSED for node in bound.backward) >= 1


def test_the_environment_can_leave_it_out() -> None:
    """`MXNET_USE_FUSION=0` is what jobs set."""
    assert is_fused({})
    assert not is_fused({"MXNET_USE_FUSION": "0"})


def test_a_graph_larger_than_any_is_left_as_it_is() -> None:
    """What a node may not join takes the square of their number: there is a bound."""
    length = fusion.MAX_NODES // 2
    bound = bound_of(chain(*("sign",) * length), {"data": (4, 8)})

    assert fused(bound) is bound


def test_a_chain_that_is_absurdly_wide_shares_nothing() -> None:
    """Inputs times outputs are bounded, as every pair is tried."""
    narrow = Node("op", "n", inputs=[], shapes=[(1,)] * 4, dtypes=["float32"] * 4)
    narrow.inputs = [Entry(narrow, 0)] * 3
    wide = Node("op", "w", inputs=[Entry(narrow, 0)] * fusion.MAX_PAIRS, shapes=[(1,)] * 2)

    assert len(fusion._anywhere(narrow).pairs) == 3 * 4
    assert fusion._anywhere(wide).pairs == ()
