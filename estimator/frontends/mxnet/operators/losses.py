"""Outputs that are losses, and tensors made from nothing.

Source: apache/mxnet@1.9.1 `src/operator/softmax_output.cc`, `regression_output*`,
`make_loss*`, `svm_output*`, `loss_binary_op*`, `nn/ctc_loss*`,
`tensor/init_op*`. A loss ignores the gradient that comes from outside.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.graph import (
    FIRST,
    IDENTITY,
    SHAPE_ONLY,
    Entry,
    Node,
    Sharing,
)
from estimator.frontends.mxnet.operators.base import (
    Call,
    Gradient,
    Inferred,
    Operator,
    Types,
    always,
    backward,
    make,
    zero_gradients,
)
from estimator.frontends.mxnet.operators.elementwise import elementwise
from estimator.frontends.mxnet.operators.gradients import from_inputs, from_outputs

FROM_OUTPUT = Sharing(pairs=((1, 0),))
LOSSES = frozenset(
    {
        "SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput",
        "MAERegressionOutput", "MakeLoss", "make_loss", "SVMOutput", "softmax_cross_entropy",
        "CTCLoss",
    }
)  # fmt: skip
"""Operators that end a symbol which trains by itself."""


def _softmax_output(call: Call) -> Inferred:
    data, label = call.data, call.inputs[1]
    attributes = call.attributes
    if label is None:
        if attributes.flag("multi_output"):
            label = (data[0], *data[2:]) if len(data) > 2 else data[:1]
        elif attributes.flag("preserve_shape"):
            label = data[:-1]
        else:
            label = data[:1]
    return Inferred([data], [data, label])


def _softmax_output_gradient(node: Node, _: Sequence[Entry]) -> list[Entry]:
    return backward(
        "_backward_SoftmaxOutput", node, [Entry(node, 0), node.inputs[1]], sharing=FIRST
    )


def _label_like(call: Call) -> Inferred:
    """Return shapes of a regression: the label is shaped like the data, or leaves out a 1."""
    label = call.inputs[1]
    if label is None:
        label = call.data[:1] if len(call.data) == 2 and call.data[1] == 1 else call.data
    return Inferred([call.data], [call.data, label])


def _regression(name: str) -> Operator:
    def gradient(node: Node, _: Sequence[Entry]) -> list[Entry]:
        reads = [node.inputs[1], Entry(node, 0)]
        return backward(f"_backward_{name}_reg_out", node, reads, sharing=FROM_OUTPUT)

    return Operator(infer=_label_like, gradient=gradient, sharing=FIRST)


def _make_loss(node: Node, _: Sequence[Entry]) -> list[Entry]:
    """Return ones, as large as what the loss is made of."""
    ones = make("ones_like", node, node.inputs[:1], node.inputs[:1], sharing=SHAPE_ONLY)
    return [Entry(ones, 0)]


def _old_make_loss(node: Node, _: Sequence[Entry]) -> list[Entry]:
    reads = node.inputs[:1] if node.attributes.get("normalization") == "valid" else []
    return backward("_backward_MakeLoss", node, reads)


def _svm(node: Node, _: Sequence[Entry]) -> list[Entry]:
    reads = [node.inputs[1], Entry(node, 0)]
    return backward("_backward_SVMOutput", node, reads, sharing=FROM_OUTPUT)


def _svm_shapes(call: Call) -> Inferred:
    return Inferred([call.data], [call.data, call.data[:1]])


def _cross_entropy(call: Call) -> Inferred:
    return Inferred([(1,)], [call.data, call.data[:1]])


def _ctc(call: Call) -> Inferred:
    return Inferred([(call.data[1],), call.data], call.inputs)


def _created(call: Call) -> Inferred:
    return Inferred([call.attributes.integers("shape") or None])


def _created_types(attributes: Attributes, _: Sequence[str | None], num_outputs: int) -> Types:
    dtype = attributes.text("dtype", "float32")
    return Types(("float32" if dtype in ("None", "-1") else dtype,) * num_outputs)


def _arange(call: Call) -> Inferred:
    attributes = call.attributes
    start, step = attributes.number("start", 0.0), attributes.number("step", 1.0)
    stop = attributes.text("stop", "None")
    end = attributes.number("stop", 0.0)
    if stop == "None":
        start, end = 0.0, start
    if not step or not -1e12 < start < 1e12 or not -1e12 < end < 1e12:
        raise call.wrong("a range without end")
    count = max(0, -int((start - end) // step)) * attributes.integer("repeat", 1)
    return Inferred([(count,)])


def _arange_like(call: Call) -> Inferred:
    axis = call.attributes.optional_integer("axis")
    if axis is None:
        return Inferred([call.data], [call.data])
    return Inferred([(call.data[call.axis(axis)],)], [call.data])


def _eye(call: Call) -> Inferred:
    rows = call.attributes.integer("N")
    return Inferred([(rows, call.attributes.integer("M", 0) or rows)])


def _shape_array(call: Call) -> Inferred:
    return Inferred([(len(call.data),)], [call.data])


def _long(_: Attributes, inputs: Sequence[str | None], num_outputs: int) -> Types:
    return Types(("int64",) * num_outputs, tuple(each or "float32" for each in inputs))


def _drawn(call: Call) -> Inferred:
    return Inferred([call.attributes.integers("shape") or (1,)])


_REGRESSIONS: dict[str, str] = {
    "LinearRegressionOutput": "linear",
    "LogisticRegressionOutput": "logistic",
    "MAERegressionOutput": "mae",
}
_CTC: Gradient = from_outputs("_backward_ctc_loss")

OPERATORS: dict[str, Operator] = {
    "SoftmaxOutput": Operator(
        infer=_softmax_output, gradient=_softmax_output_gradient, sharing=FIRST
    ),
    **{name: _regression(kind) for name, kind in _REGRESSIONS.items()},
    "make_loss": elementwise(_make_loss, IDENTITY),
    "MakeLoss": elementwise(_old_make_loss, FIRST, is_merged=False),
    "SVMOutput": Operator(infer=_svm_shapes, gradient=_svm, sharing=FIRST, is_merged=False),
    "softmax_cross_entropy": Operator(
        infer=_cross_entropy, gradient=from_inputs("_backward_softmax_cross_entropy")
    ),
    "CTCLoss": Operator(infer=_ctc, gradient=_CTC, outputs=always(2), is_merged=False),
    "_zeros": Operator(infer=_created, gradient=None, types=_created_types, is_partial=True),
    "_ones": Operator(infer=_created, gradient=None, types=_created_types, is_partial=True),
    "_full": Operator(infer=_created, gradient=None, types=_created_types, is_partial=True),
    "_arange": Operator(infer=_arange, gradient=None, types=_created_types, is_partial=True),
    "_eye": Operator(infer=_eye, gradient=None, types=_created_types, is_partial=True),
    "_contrib_arange_like": Operator(
        infer=_arange_like, gradient=zero_gradients, sharing=SHAPE_ONLY
    ),
    "shape_array": Operator(infer=_shape_array, gradient=zero_gradients, types=_long),
    "size_array": Operator(
        infer=lambda call: Inferred([(1,)], [call.data]), gradient=zero_gradients, types=_long
    ),
    **{
        f"_random_{name}": Operator(
            infer=_drawn,
            gradient=None,
            types=_created_types,
            is_partial=True,
            is_merged=False,
        )
        for name in ("uniform", "normal")
    },
}
