"""The numpy-like operators (`_npi_…`, `_np_…`, `_npx_…`) of MXNet 1.6 and later.

Source: apache/mxnet@1.9.1 `src/operator/numpy/np_elemwise_unary_op_basic.cc`,
`np_elemwise_broadcast_op.cc`, `np_elemwise_broadcast_logic_op.cc`,
`np_broadcast_reduce_op_value.cc`, `np_true_divide.cc`, `np_where_op.cc`.
A tensor without dimensions is one element here; elsewhere its shape would be unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.frontends.mxnet.graph import EITHER, Entry, Node, Shape
from estimator.frontends.mxnet.operators import (
    elementwise,
    losses,
    products,
    reductions,
    sequences,
    shaping,
)
from estimator.frontends.mxnet.operators.base import (
    Call,
    Gradient,
    Inferred,
    Operator,
    make,
    zero_gradients,
    zeros_like,
)
from estimator.frontends.mxnet.operators.elementwise import (
    BOTH_FROM_FIRST,
    SECOND_BINARY,
    boolean,
)
from estimator.frontends.mxnet.operators.gradients import (
    from_input_and_output,
    from_inputs,
    from_nothing,
)
from estimator.frontends.mxnet.operators.reductions import broadcast, broadcast_shape


def _reduce(call: Call) -> Inferred:
    """Return the shape of a reduction: of all axes if none is said, of none if `()` is."""
    written = call.attributes.text("axis", "None")
    axes = call.attributes.integers("axis")
    if not axes and written in ("()", "[]"):
        return Inferred([call.data], [call.data])
    return Inferred([reductions.reduced_shape(call, axes, scalar=())], [call.data])


def _where(call: Call) -> Inferred:
    shapes = [call.input(index) for index in range(3)]
    return Inferred([broadcast_shape(call, shapes)], shapes)


def _where_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    condition, left, right = node.inputs
    made = make("_backward_np_where", node, [gradients[0], condition], [left, right])
    return [zeros_like(node, condition), *made.outputs()]


def _broadcast_to(call: Call) -> Inferred:
    wanted = call.attributes.integers("shape")
    data = (1,) * (len(wanted) - len(call.data)) + call.data
    shape: Shape = tuple(
        own if size in (-1, -2) else size for size, own in zip(wanted, data, strict=True)
    )
    return Inferred([shape], [call.data])


def _binary(gradient: Gradient) -> Operator:
    return Operator(infer=broadcast, gradient=gradient, sharing=EITHER)


_UNARY = (
    "exp", "log", "log2", "log10", "log1p", "expm1", "sqrt", "cbrt", "square", "sin", "cos",
    "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
    "degrees", "radians", "reciprocal", "sign", "negative", "rint", "ceil", "floor", "trunc",
    "fix",
)  # fmt: skip
_SCALARS = {
    "add_scalar": "_plus_scalar",
    "subtract_scalar": "_minus_scalar",
    "rsubtract_scalar": "_rminus_scalar",
    "multiply_scalar": "_mul_scalar",
    "true_divide_scalar": "_div_scalar",
    "rtrue_divide_scalar": "_rdiv_scalar",
    "power_scalar": "_power_scalar",
    "rpower_scalar": "_rpower_scalar",
    "mod_scalar": "_mod_scalar",
    "rmod_scalar": "_rmod_scalar",
}
_LOGIC = (
    "equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_and",
    "logical_or", "logical_xor",
)  # fmt: skip

OPERATORS: dict[str, Operator] = {
    **{f"_npi_{name}": elementwise.OPERATORS[name] for name in _UNARY},
    "_npi_absolute": elementwise.OPERATORS["abs"],
    **{f"_npi_{name}": elementwise.OPERATORS[own] for name, own in _SCALARS.items()},
    "_npi_add": _binary(from_inputs("_backward_npi_broadcast_add", BOTH_FROM_FIRST)),
    "_npi_subtract": _binary(from_inputs("_backward_npi_broadcast_sub", BOTH_FROM_FIRST)),
    "_npi_multiply": _binary(from_inputs("_backward_npi_broadcast_mul", SECOND_BINARY)),
    "_npi_true_divide": _binary(from_inputs("_backward_npi_broadcast_div", SECOND_BINARY)),
    "_npi_power": _binary(from_inputs("_backward_npi_broadcast_power", SECOND_BINARY)),
    "_npi_mod": _binary(from_inputs("_backward_npi_broadcast_mod", SECOND_BINARY)),
    **{
        f"_npi_{name}": Operator(
            infer=broadcast, gradient=zero_gradients, sharing=EITHER, types=boolean
        )
        for name in _LOGIC
    },
    **{
        f"_npi_{name}_scalar": elementwise.elementwise(zero_gradients, types=boolean)
        for name in _LOGIC
    },
    "_np_sum": Operator(infer=_reduce, gradient=from_nothing("_backward_np_sum")),
    "_npi_mean": Operator(infer=_reduce, gradient=from_nothing("_backward_np_mean")),
    "_np_max": Operator(infer=_reduce, gradient=from_input_and_output("_backward_np_max")),
    "_np_min": Operator(infer=_reduce, gradient=from_input_and_output("_backward_np_min")),
    "_np_prod": Operator(infer=_reduce, gradient=from_input_and_output("_backward_np_prod")),
    "_npi_broadcast_to": Operator(
        infer=_broadcast_to, gradient=from_nothing("_backward_np_broadcast_to")
    ),
    "_npi_where": Operator(infer=_where, gradient=_where_gradient, types=sequences.second_types),
    "_np_copy": elementwise.OPERATORS["_copy"],
    "_np_transpose": Operator(
        infer=shaping.OPERATORS["transpose"].infer, gradient=from_nothing("_np_transpose")
    ),
    "_np_squeeze": shaping.OPERATORS["squeeze"],
    "_npi_stack": shaping.OPERATORS["stack"],
    "_npi_zeros": losses.OPERATORS["_zeros"],
    "_npi_ones": losses.OPERATORS["_ones"],
    "_npi_arange": losses.OPERATORS["_arange"],
    "_npx_relu": elementwise.OPERATORS["relu"],
    "_npx_sigmoid": elementwise.OPERATORS["sigmoid"],
    "_npi_batch_dot": products.OPERATORS["batch_dot"],
}
