"""Reductions, broadcasts, softmax and choices along an axis.

Source: apache/mxnet@1.9.1 `src/operator/tensor/broadcast_reduce_op*.{h,cc}`,
`elemwise_binary_broadcast_op*.{h,cc}`, `ordering_op*`, `src/operator/nn/softmax*`,
`src/operator/nn/moments*`.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.graph import EITHER, FIRST, Entry, Node, Shape, Sharing
from estimator.frontends.mxnet.operators.base import (
    Call,
    Gradient,
    Infer,
    Inferred,
    Operator,
    Types,
    all_zero,
    always,
    backward,
    make,
    zero_gradients,
    zeros_like,
)
from estimator.frontends.mxnet.operators.elementwise import BOTH_FROM_FIRST, SECOND_BINARY
from estimator.frontends.mxnet.operators.gradients import (
    from_both,
    from_input_and_output,
    from_inputs,
    from_nothing,
    from_outputs,
)

SOFTMAX_GRADIENT = Sharing(pairs=((0, 0), (1, 0)))
SOFTMAX_GRADIENT_WIDE = Sharing(pairs=((0, 0), (1, 0), (2, 0)))
SOFTMAX_GRADIENT_LENGTH = Sharing(pairs=((0, 0), (1, 0), (2, 1), (3, 0)))


def reduced_shape(call: Call, axes: Sequence[int], *, scalar: Shape = (1,)) -> Shape:
    """Return the shape after reducing *axes*, all if there are none; *scalar* if none is left."""
    data = call.data
    attributes = call.attributes
    keep = attributes.flag("keepdims")
    chosen = {call.axis(axis) for axis in axes}
    if not chosen:
        return (1,) * len(data) if keep else scalar
    if attributes.flag("exclude"):
        chosen = set(range(len(data))) - chosen
    if keep:
        return tuple(1 if axis in chosen else size for axis, size in enumerate(data))
    return tuple(size for axis, size in enumerate(data) if axis not in chosen) or scalar


def _reduce(call: Call) -> Inferred:
    return Inferred([reduced_shape(call, call.attributes.integers("axis"))], [call.data])


def _reduce_axis(call: Call) -> Inferred:
    axis = call.attributes.optional_integer("axis")
    if axis is None or len(call.data) == 1:
        keep = call.attributes.flag("keepdims")
        return Inferred([(1,) * len(call.data) if keep else (1,)], [call.data])
    return Inferred([reduced_shape(call, (axis,))], [call.data])


def _norm(call: Call) -> Inferred:
    return Inferred([reduced_shape(call, call.attributes.integers("axis"))], [call.data])


def broadcast_shape(call: Call, shapes: Sequence[Shape]) -> Shape:
    """Return the shape *shapes* broadcast to."""
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wide = {size for size in sizes if size != 1} or {1}
        if len(wide) > 1:
            raise call.wrong(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result.append(wide.pop())
    return tuple(result)


def broadcast(call: Call) -> Inferred:
    """Return the shape two inputs broadcast to."""
    shapes = [call.input(0), call.input(1)]
    return Inferred([broadcast_shape(call, shapes)], shapes)


def _broadcast_axis(call: Call) -> Inferred:
    axes, sizes = call.attributes.integers("axis"), call.attributes.integers("size")
    shape = list(call.data)
    for axis, size in zip(axes, sizes, strict=False):
        shape[call.axis(axis)] = size
    return Inferred([tuple(shape)], [call.data])


def _broadcast_to(call: Call) -> Inferred:
    wanted = call.attributes.integers("shape")
    data = (1,) * (len(wanted) - len(call.data)) + call.data
    shape = tuple(size or own for size, own in zip(wanted, data, strict=True))
    return Inferred([shape], [call.data])


def _broadcast_like(call: Call) -> Inferred:
    left, right = call.attributes.integers("lhs_axes"), call.attributes.integers("rhs_axes")
    if not left:
        return Inferred([call.input(1)], call.inputs)
    shape = list(call.data)
    for mine, other in zip(left, right, strict=True):
        shape[call.axis(mine)] = call.input(1)[call.axis(other, len(call.input(1)))]
    return Inferred([tuple(shape)], call.inputs)


def first_and_zeros(operator: str, *, reads_second: bool) -> Gradient:
    """Return a gradient for the first input, and zeros for the second, a shape or an index."""

    def gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
        if all_zero(gradients):
            return zero_gradients(node, gradients)
        reads = [gradients[0], *([node.inputs[1]] if reads_second else [])]
        first = make(operator, node, reads, node.inputs[:1])
        return [Entry(first, 0), zeros_like(node, node.inputs[1])]

    return gradient


def _is_wide(attributes: Attributes) -> bool:
    return attributes.text("dtype", "None") != "None"


def _softmax_gradient(name: str) -> Gradient:
    """Return softmax's gradient: its output suffices unless type or length are others."""

    def gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
        attributes = Attributes(node.name, node.attributes)
        if attributes.flag("use_length"):
            return from_both(name, SOFTMAX_GRADIENT_LENGTH)(node, gradients)
        if _is_wide(attributes):
            return from_both(name, SOFTMAX_GRADIENT_WIDE)(node, gradients)
        return from_outputs(name, SOFTMAX_GRADIENT)(node, gradients)

    return gradient


def _softmax(call: Call) -> Inferred:
    return Inferred([call.data], [call.data])


def _softmax_types(attributes: Attributes, inputs: Sequence[str | None], _: int) -> Types:
    data = inputs[0] or "float32"
    output = attributes.text("dtype") if _is_wide(attributes) else data
    return Types((output,), (data, *(each or "int32" for each in inputs[1:])))


def _pick(call: Call) -> Inferred:
    axis = call.attributes.integer("axis", -1)
    data = call.data
    reduced = reduced_shape(call, (axis,)) if len(data) > 1 else (1,)
    index = call.inputs[1]
    if index is None:
        chosen = call.axis(axis)
        index = tuple(size for place, size in enumerate(data) if place != chosen) or (1,)
    return Inferred([reduced], [data, index])


def _topk_outputs(attributes: Attributes) -> int:
    return 2 if attributes.text("ret_typ", "indices") in ("value", "both") else 1


def _topk(call: Call) -> Inferred:
    axis = call.attributes.optional_integer("axis")
    axis = -1 if axis is None else axis
    kept = call.attributes.integer("k", 1)
    place = call.axis(axis)
    size = call.data[place] if kept < 1 else kept
    shape = (*call.data[:place], size, *call.data[place + 1 :])
    if call.attributes.text("ret_typ") == "mask":
        shape = call.data
    return Inferred([shape] * len(call.outputs), [call.data])


def _topk_types(attributes: Attributes, inputs: Sequence[str | None], num_outputs: int) -> Types:
    data = inputs[0] or "float32"
    index = attributes.text("dtype", "float32")
    first = index if attributes.text("ret_typ", "indices") == "indices" else data
    return Types((first, index)[:num_outputs], (data,))


def _topk_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    if node.attributes.get("ret_typ", "indices") in ("value", "both"):
        reads = [gradients[0], *node.outputs()]
        return backward("_backward_topk", node, reads)
    return zero_gradients(node, gradients)


def _sort_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    return backward("_backward_topk", node, [gradients[0], *node.outputs()])


def _moments(call: Call) -> Inferred:
    shape = reduced_shape(call, call.attributes.integers("axes"))
    return Inferred([shape, shape], [call.data])


def _index_types(attributes: Attributes, inputs: Sequence[str | None], num_outputs: int) -> Types:
    return Types((attributes.text("dtype", "float32"),) * num_outputs, (inputs[0] or "float32",))


def _reduction(gradient: Gradient, infer: Infer = _reduce) -> Operator:
    return Operator(infer=infer, gradient=gradient)


def _broadcast(gradient: Gradient) -> Operator:
    return Operator(infer=broadcast, gradient=gradient, sharing=EITHER)


_SOFTMAXES = ("softmax", "log_softmax", "softmin")
_COMPARISONS = (
    "equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal", "logical_and",
    "logical_or", "logical_xor",
)  # fmt: skip

OPERATORS: dict[str, Operator] = {
    "sum": _reduction(from_nothing("_backward_sum")),
    "mean": _reduction(from_nothing("_backward_mean")),
    **{
        name: _reduction(from_input_and_output(f"_backward_{name}"))
        for name in ("prod", "nansum", "nanprod", "max", "min")
    },
    "norm": _reduction(from_input_and_output("_backward_norm"), _norm),
    "argmax": _reduction(zero_gradients, _reduce_axis),
    "argmin": _reduction(zero_gradients, _reduce_axis),
    "argmax_channel": Operator(
        infer=lambda call: Inferred([call.data[:1] + call.data[2:]], [call.data]), gradient=None
    ),
    "broadcast_add": _broadcast(from_nothing("_backward_broadcast_add", BOTH_FROM_FIRST)),
    "broadcast_sub": _broadcast(from_nothing("_backward_broadcast_sub", BOTH_FROM_FIRST)),
    **{
        f"broadcast_{name}": _broadcast(from_inputs(f"_backward_broadcast_{name}", SECOND_BINARY))
        for name in ("mul", "div", "mod", "power", "maximum", "minimum", "hypot")
    },
    **{f"broadcast_{name}": _broadcast(zero_gradients) for name in _COMPARISONS},
    "broadcast_axis": Operator(infer=_broadcast_axis, gradient=from_nothing("_broadcast_backward")),
    "broadcast_to": Operator(infer=_broadcast_to, gradient=from_nothing("_broadcast_backward")),
    "broadcast_like": Operator(
        infer=_broadcast_like,
        gradient=first_and_zeros("_broadcast_backward", reads_second=False),
    ),
    **{
        name: Operator(
            infer=_softmax,
            gradient=_softmax_gradient(f"_backward_{name}"),
            types=_softmax_types,
            sharing=FIRST,
        )
        for name in _SOFTMAXES
    },
    "pick": Operator(infer=_pick, gradient=first_and_zeros("_backward_pick", reads_second=True)),
    "topk": Operator(
        infer=_topk, gradient=_topk_gradient, outputs=_topk_outputs, types=_topk_types
    ),
    "sort": Operator(
        infer=lambda call: Inferred([call.data, call.data], [call.data]),
        gradient=_sort_gradient,
        outputs=always(2),
    ),
    "argsort": Operator(
        infer=lambda call: Inferred([call.data], [call.data]),
        gradient=zero_gradients,
        types=_index_types,
    ),
    "moments": Operator(
        infer=_moments,
        gradient=from_both("_backward_moments"),
        outputs=always(2),
        sharing=FIRST,
    ),
}
