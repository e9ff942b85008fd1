"""Operators that work element by element: unary, binary, with a scalar, sums of many.

Source: apache/mxnet@1.9.1 `src/operator/tensor/elemwise_unary_op*.{h,cc}`,
`elemwise_binary_op*.{h,cc}`, `elemwise_binary_scalar_op*.{h,cc}`, `elemwise_sum.cc`,
`src/operator/tensor/amp_cast.cc`, `src/operator/leaky_relu*`, `src/operator/nn/activation.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.graph import (
    EITHER,
    FIRST,
    IDENTITY,
    NOTHING_SHARED,
    SHAPE_ONLY,
    Entry,
    Node,
    Shape,
    Sharing,
)
from estimator.frontends.mxnet.operators.base import (
    Call,
    Gradient,
    Inferred,
    Operator,
    Types,
    all_zero,
    backward,
    make,
    zero_gradients,
    zeros_like,
)
from estimator.frontends.mxnet.operators.gradients import (
    from_both,
    from_inputs,
    from_nothing,
    from_outputs,
    passed_on,
)

SECOND_BINARY = Sharing(pairs=((0, 1),))
BOTH_FROM_FIRST = Sharing(pairs=((0, 0), (0, 1)))


def merged(call: Call, shapes: Sequence[Shape | None]) -> Shape | None:
    """Return the one shape that all of *shapes* are, as far as they are known."""
    known: Shape | None = None
    for shape in shapes:
        if shape is None:
            continue
        if known is None:
            known = shape
            continue
        if len(known) != len(shape):
            raise call.wrong(f"shapes {known} and {shape} differ")
        joined = []
        for left, right in zip(known, shape, strict=True):
            if left and right and left != right:
                raise call.wrong(f"shapes {known} and {shape} differ")
            joined.append(left or right)
        known = tuple(joined)
    return known


def same_shape(call: Call) -> Inferred:
    """Return that all inputs and outputs have one shape."""
    shape = merged(call, [*call.inputs, *call.outputs])
    return Inferred([shape] * len(call.outputs), [shape] * len(call.inputs))


def elementwise(gradient: Gradient | None, sharing: Sharing = FIRST, **others: object) -> Operator:
    """Return an operator on tensors of one shape."""
    return Operator(
        infer=same_shape,
        gradient=gradient,
        sharing=sharing,
        is_partial=True,
        **others,  # type: ignore[arg-type]  # fields of Operator
    )


def cast_types(attributes: Attributes, inputs: Sequence[str | None], _: int) -> Types:
    """Return types of a cast."""
    return Types((attributes.text("dtype", "float32"),), (inputs[0] or "float32",))


def _from_output(name: str) -> Gradient:
    return from_outputs(f"_backward_{name}", EITHER)


def _from_input(name: str) -> Gradient:
    return from_inputs(f"_backward_{name}", EITHER)


def _activation(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    """Return an activation's gradient: relu needs its output only, others their input too."""
    reads = [*gradients, Entry(node, 0)]
    if node.attributes.get("act_type", "relu") != "relu":
        reads.append(node.inputs[0])
    return backward("_backward_Activation", node, reads, sharing=FIRST)


def _exp(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    if all_zero(gradients):
        return zero_gradients(node, gradients)
    return backward("_mul", node, [gradients[0], Entry(node, 0)], sharing=EITHER)


def _like_right(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    """Return a copy for the left input, and zeros for the right one, only read for its shape."""
    if all_zero(gradients):
        return zero_gradients(node, gradients)
    left = make("_copy", node, gradients[:1], node.inputs[:1], sharing=IDENTITY)
    return [Entry(left, 0), zeros_like(node, node.inputs[1])]


def _sum_of_many(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    return [
        Entry(make("identity", node, gradients[:1], gradients[:1], sharing=IDENTITY), 0)
        for _ in node.inputs
    ]


def _leaky(call: Call) -> Inferred:
    """Return the shapes of LeakyReLU: gamma is one value a channel."""
    shape = call.data
    gamma = call.inputs[1] if len(call.inputs) > 1 else None
    if len(call.inputs) > 1 and gamma is None:
        gamma = (shape[1],) if len(shape) > 1 else (1,)
    mask = [shape] if len(call.outputs) > 1 else []
    return Inferred([shape, *mask], [shape, gamma])


def _is_random(attributes: Attributes) -> int:
    return 2 if attributes.text("act_type", "leaky") == "rrelu" else 1


def _multicast(call: Call) -> Inferred:
    return Inferred(list(call.inputs), list(call.inputs))


def _widest(_: Attributes, inputs: Sequence[str | None], num_outputs: int) -> Types:
    known = [each or "float32" for each in inputs]
    wide = "float32" if "float32" in known else known[0]
    return Types((wide,) * num_outputs, tuple(known))


def boolean(_: Attributes, inputs: Sequence[str | None], num_outputs: int) -> Types:
    return Types(("bool",) * num_outputs, tuple(each or "float32" for each in inputs))


FROM_OUTPUT = ("relu", "sigmoid", "tanh", "sqrt", "cbrt", "tan", "erfinv")
FROM_INPUT = (
    "softsign", "abs", "sign", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "arcsin",
    "arccos", "arctan", "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "degrees", "radians",
    "rsqrt", "rcbrt", "square", "reciprocal", "erf", "gamma", "gammaln",
)  # fmt: skip
WITHOUT = ("round", "rint", "ceil", "floor", "trunc", "fix", "logical_not")

UNARY: dict[str, Operator] = {
    **{name: elementwise(_from_output(name)) for name in FROM_OUTPUT},
    **{name: elementwise(_from_input(name)) for name in FROM_INPUT},
    **{name: elementwise(zero_gradients) for name in WITHOUT},
    "exp": elementwise(_exp),
    "negative": elementwise(from_nothing("negative", FIRST)),
    "hard_sigmoid": elementwise(from_inputs("_backward_hard_sigmoid", IDENTITY)),
    "smooth_l1": elementwise(from_inputs("_backward_smooth_l1", EITHER)),
    "clip": elementwise(from_inputs("_backward_clip"), NOTHING_SHARED),
    "_copy": elementwise(from_nothing("_copy", IDENTITY), IDENTITY),
    "BlockGrad": elementwise(zero_gradients, IDENTITY),
    "Cast": elementwise(from_nothing("_backward_cast", IDENTITY), IDENTITY, types=cast_types),
    "amp_cast": elementwise(
        from_nothing("_backward_amp_cast", IDENTITY), IDENTITY, types=cast_types
    ),
    "zeros_like": elementwise(zero_gradients, SHAPE_ONLY),
    "ones_like": elementwise(zero_gradients, SHAPE_ONLY),
    "_contrib_div_sqrt_dim": elementwise(from_nothing("_contrib_div_sqrt_dim", FIRST)),
    "_contrib_gradientmultiplier": elementwise(
        from_nothing("_contrib_backward_gradientmultiplier", FIRST), IDENTITY
    ),
    "Activation": elementwise(_activation),
    "SoftmaxActivation": elementwise(from_outputs("_backward_SoftmaxActivation", FIRST)),
    "LeakyReLU": Operator(
        infer=_leaky,
        gradient=from_both("_backward_LeakyReLU", FIRST),
        outputs=_is_random,
        sharing=FIRST,
        is_merged=False,
    ),
    "gelu": elementwise(from_both("_backward_gelu", EITHER)),
}

BINARY: dict[str, Operator] = {
    "elemwise_add": elementwise(passed_on, EITHER),
    "_grad_add": elementwise(None, EITHER),
    "elemwise_sub": elementwise(from_nothing("_backward_sub", BOTH_FROM_FIRST), EITHER),
    "elemwise_mul": elementwise(from_inputs("_backward_mul", SECOND_BINARY), EITHER),
    "elemwise_div": elementwise(from_inputs("_backward_div", SECOND_BINARY), EITHER),
    **{
        f"_{name}": elementwise(from_inputs(f"_backward_{name}", SECOND_BINARY), EITHER)
        for name in ("maximum", "minimum", "power", "hypot", "mod")
    },
    **{
        f"_{name}": elementwise(zero_gradients, EITHER)
        for name in (
            "equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal",
            "logical_and", "logical_or", "logical_xor",
        )
    },
    "_identity_with_attr_like_rhs": elementwise(
        _like_right,
        Sharing(pairs=((0, 0),), is_identity=True, ignored=frozenset({1})),
    ),
    "add_n": elementwise(_sum_of_many, FIRST),
    "amp_multicast": Operator(
        infer=_multicast,
        gradient=from_nothing("_backward_amp_multicast"),
        outputs=lambda attributes: attributes.integer("num_outputs"),
        types=_widest,
    ),
}  # fmt: skip

SCALAR: dict[str, Operator] = {
    "_plus_scalar": elementwise(from_nothing("_copy", IDENTITY)),
    "_minus_scalar": elementwise(from_nothing("_copy", IDENTITY)),
    "_rminus_scalar": elementwise(from_nothing("negative", FIRST)),
    "_mul_scalar": elementwise(from_nothing("_backward_mul_scalar", FIRST)),
    "_div_scalar": elementwise(from_nothing("_backward_div_scalar", FIRST)),
    "_rpower_scalar": elementwise(from_outputs("_backward_rpower_scalar", EITHER)),
    **{
        f"_{name}_scalar": elementwise(from_inputs(f"_backward_{name}_scalar", EITHER))
        for name in ("rdiv", "maximum", "minimum", "power", "mod", "rmod", "hypot")
    },
    **{
        f"_{name}_scalar": elementwise(zero_gradients)
        for name in (
            "equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal",
            "logical_and", "logical_or", "logical_xor",
        )
    },
}  # fmt: skip

OPERATORS = UNARY | BINARY | SCALAR
