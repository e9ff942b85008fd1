"""Products: dot, batch_dot, matmul, interleaved attention.

Source: apache/mxnet@1.9.1 `src/operator/tensor/dot*.{h,cc}`,
`src/operator/numpy/{np_dot,np_matmul_op}.cc`, `src/operator/contrib/transformer.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.graph import Entry, Node, Shape
from estimator.frontends.mxnet.operators.base import Call, Infer, Inferred, Operator, make
from estimator.frontends.mxnet.operators.gradients import from_inputs
from estimator.frontends.mxnet.operators.reductions import broadcast_shape


def _dot(call: Call) -> Inferred:
    left, right = call.data, call.input(1)
    turned, other = call.attributes.flag("transpose_a"), call.attributes.flag("transpose_b")
    rows = (left[1:] if turned else left[:-1]) if len(left) > 1 else ()
    columns = (right[:-1] if other else right[1:]) if len(right) > 1 else ()
    inner = left[0] if turned else left[-1]
    if inner != (right[-1] if other else right[0]):
        raise call.wrong(f"shapes {left} and {right} have no product")
    return Inferred([(*rows, *columns) or (1,)], [left, right])


def _batch_dot(call: Call) -> Inferred:
    left, right = call.data, call.input(1)
    if len(left) != len(right) or len(left) < 3 or left[:-2] != right[:-2]:
        raise call.wrong(f"shapes {left} and {right} have no product")
    turned, other = call.attributes.flag("transpose_a"), call.attributes.flag("transpose_b")
    rows, inner = (left[-1], left[-2]) if turned else (left[-2], left[-1])
    same, columns = (right[-1], right[-2]) if other else (right[-2], right[-1])
    if inner != same:
        raise call.wrong(f"shapes {left} and {right} have no product")
    return Inferred([(*left[:-2], rows, columns)], [left, right])


def _batch_dot_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    """Return two more products, each of a gradient and the other input."""
    attributes = Attributes(node.name, node.attributes)
    turned, other = attributes.flag("transpose_a"), attributes.flag("transpose_b")
    gradient, (left, right) = gradients[0], node.inputs
    for_left = [right, gradient] if turned else [gradient, right]
    for_right = [gradient, left] if other else [left, gradient]
    return [
        Entry(make("batch_dot", node, for_left, [left], name=f"{node.name}_backward_lhs"), 0),
        Entry(make("batch_dot", node, for_right, [right], name=f"{node.name}_backward_rhs"), 0),
    ]


def _matmul(call: Call) -> Inferred:
    left, right = call.data, call.input(1)
    if len(left) == 1 and len(right) == 1:
        return Inferred([()], [left, right])
    if len(right) == 1:
        return Inferred([left[:-1]], [left, right])
    if len(left) == 1:
        return Inferred([(*right[:-2], right[-1])], [left, right])
    batch: Shape = ()
    if left[:-2] or right[:-2]:
        batch = broadcast_shape(call, [left[:-2], right[:-2]])
    return Inferred([(*batch, left[-2], right[-1])], [left, right])


def _numpy_dot(call: Call) -> Inferred:
    left, right = call.data, call.input(1)
    if not left or not right:
        return Inferred([left or right], [left, right])
    columns = (*right[:-2], right[-1]) if len(right) > 1 else ()
    return Inferred([(*left[:-1], *columns)], [left, right])


def _tensordot(call: Call) -> Inferred:
    axes = call.attributes.integer("axes")
    left, right = call.data, call.input(1)
    return Inferred([(*left[: len(left) - axes], *right[axes:])], [left, right])


def _self_scores(call: Call) -> Inferred:
    length, batch, _ = call.data
    return Inferred([(call.attributes.integer("heads") * batch, length, length)], [call.data])


def _self_values(call: Call) -> Inferred:
    length, batch, width = call.data
    return Inferred([(length, batch, width // 3)], call.inputs)


def _cross_scores(call: Call) -> Inferred:
    length, batch, _ = call.data
    heads = call.attributes.integer("heads")
    return Inferred([(batch * heads, length, call.input(1)[0])], call.inputs)


def _cross_values(call: Call) -> Inferred:
    _, batch, width = call.data
    return Inferred([(call.input(1)[1], batch, width // 2)], call.inputs)


def _interleaved(name: str, infer: Infer) -> Operator:
    return Operator(infer=infer, gradient=from_inputs(f"_backward_interleaved_matmul_{name}"))


OPERATORS: dict[str, Operator] = {
    "dot": Operator(infer=_dot, gradient=from_inputs("_backward_dot")),
    "batch_dot": Operator(infer=_batch_dot, gradient=_batch_dot_gradient),
    "_npi_matmul": Operator(infer=_matmul, gradient=from_inputs("_backward_np_matmul")),
    "_np_dot": Operator(infer=_numpy_dot, gradient=from_inputs("_backward_np_dot")),
    "_npi_tensordot_int_axes": Operator(
        infer=_tensordot, gradient=from_inputs("_backward_npi_tensordot_int_axes")
    ),
    "_contrib_interleaved_matmul_selfatt_qk": _interleaved("selfatt_qk", _self_scores),
    "_contrib_interleaved_matmul_selfatt_valatt": _interleaved("selfatt_valatt", _self_values),
    "_contrib_interleaved_matmul_encdec_qk": _interleaved("encdec_qk", _cross_scores),
    "_contrib_interleaved_matmul_encdec_valatt": _interleaved("encdec_valatt", _cross_values),
}
