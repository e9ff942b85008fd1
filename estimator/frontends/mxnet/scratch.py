"""Scratch memory operators ask MXNet itself for (`kTempSpace`), beside what libraries take.

Node -> bytes

A device has one block for it, which grows to the largest call's and stays (`mxnet_pool.py`).
Reductions put partial sums there: one value of 8 bytes for each block of a result's addends.

Source: apache/mxnet@1.9.1 `src/operator/tensor/broadcast_reduce-inl.cuh` (`ConfigureReduceImpl`),
`elemwise_binary_broadcast_op-inl.cuh` (`BinaryBroadcastBackwardUseNone`), `indexing_op.cu`
(`EmbeddingGradKernelCaller`), `ordering_op-inl.h` (`TopKImpl`), `sort_op-inl.cuh`;
`src/operator/{loss_binary_op,nn/moments,nn/layer_norm,nn/group_norm}-inl.h`,
`src/operator/nn/layer_norm.cu`, `src/operator/numpy/{np_matmul_op,np_where_op}-inl.h`.
Not modelled: what cub's sort takes beside its keys and values; CTCLoss, `_np_dot` and
`_npi_tensordot_int_axes`; calls that take a few values a channel or a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.graph import ITEM_BYTES, Node

INDEX = 4
"""Bytes of `index_t`: the wheels are built without `USE_INT64_TENSOR_SIZE`."""
POINTER = 8
PARTIAL = 8
ADDENDS = ((8, 1 << 16), (256, 1 << 14))
"""Up to how many results, and how many addends of each one block sums: 1,024 threads, divided
between results and addends, of 64 each."""
MOST_ADDENDS = 1 << 11


def scratch_bytes(node: Node) -> int:
    """Return the scratch memory of one call of *node* on a card."""
    forward = node.forward
    if not node.is_backward:
        rule = FORWARD.get(node.operator)
        return rule(node, node) if rule else 0
    if forward is None or not node.operator.startswith("_backward"):
        return 0
    rule = BACKWARD.get(forward.operator)
    return rule(node, forward) if rule else 0


Rule = Callable[[Node, Node], int]
"""Of a node, and of the node it is the gradient of or itself."""


def _partial_sums(results: int, elements: int) -> int:
    """Return what summing *elements* into *results* takes."""
    if not results or results == elements:
        return 0
    block = next((most for below, most in ADDENDS if results < below), MOST_ADDENDS)
    blocks = -(-elements // results // block) if elements // results > block else 1
    return results * blocks * PARTIAL if blocks > 1 else 0


def _reduced(node: Node, _: Node) -> int:
    return _partial_sums(node.outputs()[0].elements, node.inputs[0].elements)


def _sides(_: Node, forward: Node) -> int:
    """Return what the gradients of two operands take that were repeated."""
    result = forward.outputs()[0].elements
    return max(_partial_sums(side.elements, result) for side in forward.inputs[:2])


def _all_of_it(_: Node, forward: Node) -> int:
    """Return an index for each element of the result, unless nothing was repeated."""
    result = forward.outputs()[0]
    is_repeated = any(side.shape != result.shape for side in forward.inputs[:2])
    return result.elements * INDEX if is_repeated else 0


def _embedding(_: Node, forward: Node) -> int:
    tokens, rows = forward.inputs[0].elements, forward.inputs[1].shape[0]
    return 2 * INDEX * (tokens + rows) + 2 * INDEX * tokens


def _sorted(node: Node, _: Node) -> int:
    data = node.inputs[0]
    item = ITEM_BYTES[data.dtype]
    return data.elements * (max(item, INDEX) + INDEX + INDEX + item + INDEX)


def _first_operand(_: Node, forward: Node) -> int:
    return forward.inputs[0].nbytes


def _normalised_twice(_: Node, forward: Node) -> int:
    return 2 * forward.inputs[0].nbytes


def _layer_norm(node: Node, forward: Node) -> int:
    """Return nothing for the last axis, which has a kernel of its own."""
    rank = len(forward.inputs[0].shape)
    axis = Attributes(forward.name, forward.attributes).integer("axis", -1)
    return 0 if axis in (-1, rank - 1) else _normalised_twice(node, forward)


def _cross_entropy(_: Node, forward: Node) -> int:
    data, labels = forward.inputs[:2]
    return data.nbytes + labels.elements * ITEM_BYTES[data.dtype]


def _matmul_bytes(forward: Node) -> tuple[int, int, int, int]:
    """Return the bytes of operands and result, repeated over the batch, and of pointers to them."""
    left, right, result = forward.inputs[0], forward.inputs[1], forward.outputs()[0]
    batch = prod(result.shape[:-2])
    item = ITEM_BYTES[result.dtype]
    repeated = batch * item
    return (
        prod(left.shape[-2:]) * repeated,
        prod(right.shape[-2:]) * repeated,
        prod(result.shape[-2:]) * repeated,
        3 * batch * POINTER,
    )


def _matmul(_: Node, forward: Node) -> int:
    left, right, _result, pointers = _matmul_bytes(forward)
    return left + right + pointers


def _matmul_gradient(_: Node, forward: Node) -> int:
    left, right, result, pointers = _matmul_bytes(forward)
    return 2 * (left + right + result + pointers)


def _where(_: Node, forward: Node) -> int:
    result = forward.outputs()[0]
    is_repeated = any(side.shape != result.shape for side in forward.inputs[1:3])
    return result.nbytes if is_repeated else 0


FORWARD: Mapping[str, Rule] = {
    **dict.fromkeys(
        ("sum", "mean", "prod", "max", "min", "nansum", "nanprod", "norm", "moments"), _reduced
    ),
    **dict.fromkeys(("_np_sum", "_np_max", "_np_min", "_np_prod", "_npi_mean"), _reduced),
    **dict.fromkeys(("topk", "sort", "argsort"), _sorted),
    "softmax_cross_entropy": _cross_entropy,
    "_npi_matmul": _matmul,
}
BACKWARD: Mapping[str, Rule] = {
    **dict.fromkeys(("broadcast_add", "broadcast_sub", "_npi_add", "_npi_subtract"), _all_of_it),
    **dict.fromkeys(
        ("broadcast_mul", "broadcast_div", "broadcast_maximum", "broadcast_minimum"), _sides
    ),
    **dict.fromkeys(("broadcast_power", "broadcast_hypot", "broadcast_mod"), _sides),
    **dict.fromkeys(("_npi_multiply", "_npi_true_divide", "_npi_power", "_npi_mod"), _sides),
    **dict.fromkeys(("broadcast_axis", "broadcast_to", "broadcast_like"), _reduced),
    "_npi_broadcast_to": _reduced,
    "Embedding": _embedding,
    "GroupNorm": _normalised_twice,
    "LayerNorm": _layer_norm,
    "moments": _first_operand,
    "softmax_cross_entropy": _first_operand,
    "_npi_matmul": _matmul_gradient,
    "_npi_where": _where,
}
