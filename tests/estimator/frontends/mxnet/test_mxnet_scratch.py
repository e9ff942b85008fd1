"""Scratch memory of operators, from the shapes they see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from estimator.allocators.mxnet_pool import MxnetPool
from estimator.frontends.mxnet.bound import bind
from estimator.frontends.mxnet.graph import in_order
from estimator.frontends.mxnet.inference import infer
from estimator.frontends.mxnet.scratch import scratch_bytes
from estimator.frontends.mxnet.symbol import read_symbol
from estimator.trace import SCRATCH_STREAM

Shapes = Mapping[str, Sequence[int]]


def call(operator: str, shapes: Shapes, **attributes: str) -> dict[str, Any]:
    """Return a symbol of one operator on inputs named as in *shapes*."""
    nodes: list[dict[str, Any]] = [{"op": "null", "name": name, "inputs": []} for name in shapes]
    inputs = [[index, 0, 0] for index in range(len(nodes))]
    nodes.append({"op": operator, "name": "it", "inputs": inputs, "attrs": attributes})
    return {"nodes": nodes, "heads": [[len(shapes), 0, 0]]}


def scratch(operator: str, shapes: Shapes, **attributes: str) -> tuple[int, int]:
    """Return the scratch of a call of *operator*, and of its gradient."""
    heads = read_symbol(call(operator, shapes, **attributes))
    infer(in_order(heads), {name: tuple(shape) for name, shape in shapes.items()}, {})
    bound = bind(heads, frozenset(), is_trained=True)
    found = [(node.is_backward, scratch_bytes(node)) for node in bound.order]
    return (
        max(nbytes for is_backward, nbytes in found if not is_backward),
        max((nbytes for is_backward, nbytes in found if is_backward), default=0),
    )


@pytest.mark.parametrize(
    ("shape", "axis", "nbytes"),
    [
        ((512, 2048), "1", 0),  # 2,048 addends are one block
        ((512, 2049), "1", 512 * 2 * 8),
        ((100, 1 << 15), "1", 100 * 2 * 8),  # few results leave more threads to the addends
        ((4, 1 << 18), "1", 4 * 4 * 8),
        ((512, 1), "1", 0),  # nothing to add
    ],
)
def test_a_reduction_keeps_a_value_for_each_block_of_addends(
    shape: tuple[int, ...], axis: str, nbytes: int
) -> None:
    """Only where one block cannot sum them all."""
    assert scratch("sum", {"data": shape}, axis=axis)[0] == nbytes


def test_the_gradient_of_a_repeated_sum_takes_an_index_for_each_element() -> None:
    """Although it uses little of it; of equal shapes nothing is reduced."""
    repeated = {"lhs": (64, 1000), "rhs": (1, 1000)}
    equal = {"lhs": (64, 1000), "rhs": (64, 1000)}

    assert scratch("broadcast_add", repeated) == (0, 64 * 1000 * 4)
    assert scratch("broadcast_add", equal) == (0, 0)


def test_the_gradient_of_a_repeated_product_takes_partial_sums() -> None:
    """Of the larger of its two sides."""
    shapes = {"lhs": (4096, 1000), "rhs": (1, 1000)}

    assert scratch("broadcast_mul", shapes)[1] == 1000 * 2 * 8


def test_a_sort_takes_several_copies() -> None:
    """Keys, indices and batch numbers: five words an element in fp32."""
    assert scratch("argsort", {"data": (8, 1000)})[0] == 8 * 1000 * 5 * 4


def test_a_matrix_product_of_numpy_copies_its_operands() -> None:
    """Repeated over the batch, with three pointers for each of its matrices."""
    shapes = {"a": (16, 8, 4), "b": (16, 4, 2)}
    operands, result, pointers = 16 * (8 * 4 + 4 * 2) * 4, 16 * 8 * 2 * 4, 3 * 16 * 8

    assert scratch("_npi_matmul", shapes) == (
        operands + pointers,
        2 * (operands + result + pointers),
    )


def test_the_gradient_of_an_embedding_sorts_its_tokens() -> None:
    """Tokens and rows with an index each, twice, and the sort's own keys and values."""
    shapes = {"data": (32, 100), "weight": (5000, 64)}

    found = scratch("Embedding", shapes, input_dim="5000", output_dim="64")

    assert found[1] == 8 * (3200 + 5000) + 8 * 3200


def test_normalising_another_axis_than_the_last_keeps_two_copies() -> None:
    """The last one has a kernel of its own."""
    shapes = {"data": (8, 16, 32), "gamma": (16,), "beta": (16,)}
    last = {"data": (8, 16, 32), "gamma": (32,), "beta": (32,)}

    assert scratch("LayerNorm", shapes, axis="1")[1] == 2 * 8 * 16 * 32 * 4
    assert scratch("LayerNorm", last, axis="-1")[1] == 0


def test_the_block_for_scratch_is_as_large_as_the_largest_call() -> None:
    """It is shared by all of them and stays."""
    pool = MxnetPool()
    for tensor, nbytes in enumerate([1 << 20, 1 << 22, 1 << 21]):
        assert pool.allocate(tensor, nbytes, SCRATCH_STREAM)
        pool.free(tensor)

    assert (pool.allocated, pool.reserved) == (0, 1 << 22)
