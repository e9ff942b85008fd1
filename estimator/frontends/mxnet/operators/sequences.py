"""Recurrent layers, embeddings, indexing and sequence masks.

Source: apache/mxnet@1.9.1 `src/operator/rnn{.cc,-inl.h}`,
`src/operator/tensor/indexing_op*.{h,cc}`, `control_flow_op*`,
`src/operator/sequence_{mask,last,reverse}-inl.h`. Not modelled: row-sparse gradients.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.graph import FIRST, NOTHING_SHARED, Entry, Node, Shape, Sharing
from estimator.frontends.mxnet.operators.base import (
    Call,
    Gradient,
    Inferred,
    Operator,
    Types,
    backward,
    make,
    zero_gradients,
    zeros_like,
)
from estimator.frontends.mxnet.operators.gradients import from_one_input

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}


def rnn_parameters(attributes: Attributes, input_size: int) -> int:
    """Return the elements of a fused layer's one parameter.

    Source: apache/mxnet@1.9.1 `src/operator/rnn-inl.h` (`GetRnnParamSize`).
    """
    state = attributes.integer("state_size")
    layers = attributes.integer("num_layers")
    directions = 2 if attributes.flag("bidirectional") else 1
    projection = attributes.optional_integer("projection_size")
    size = state * directions * GATES[attributes.text("mode")]
    handed_on = state if projection is None else projection
    first = (input_size + handed_on + 2) * size
    later = (handed_on * directions + handed_on + 2) * size
    total = first + (layers - 1) * later
    return total if projection is None else total + projection * state * layers * directions


def _rnn(call: Call) -> Inferred:
    attributes = call.attributes
    if attributes.text("mode") not in GATES:
        raise call.wrong(f"mode '{attributes.text('mode')[:32]}'")
    length, batch, width = call.data
    state = attributes.integer("state_size")
    directions = 2 if attributes.flag("bidirectional") else 1
    projection = attributes.optional_integer("projection_size")
    handed_on = state if projection is None else projection
    layers = attributes.integer("num_layers") * directions
    hidden, cell = (layers, batch, handed_on), (layers, batch, state)
    inputs: list[Shape | None] = [call.data, (rnn_parameters(attributes, width),), hidden]
    if attributes.text("mode") == "lstm":
        inputs.append(cell)
    inputs.extend([(batch,)] * (len(call.inputs) - len(inputs)))
    outputs = [(length, batch, directions * handed_on), hidden, cell]
    return Inferred(outputs[: len(call.outputs)], inputs)


def _rnn_outputs(attributes: Attributes) -> int:
    if not attributes.flag("state_outputs"):
        return 1
    return 3 if attributes.text("mode") == "lstm" else 2


def _rnn_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    data, parameters, state, *rest = node.inputs
    reads = [data, parameters, state, Entry(node, 0), gradients[0]]
    if node.num_outputs > 1:
        reads += [Entry(node, 1), gradients[1]]
    if node.attributes.get("mode") == "lstm":
        reads.append(rest[0])
        if node.num_outputs > 2:
            reads += [Entry(node, 2), gradients[2]]
    return backward("_backward_RNN", node, reads)


def _embedding(call: Call) -> Inferred:
    rows, width = call.attributes.integer("input_dim"), call.attributes.integer("output_dim")
    return Inferred([(*call.data, width)], [call.data, (rows, width)])


def _embedding_types(attributes: Attributes, inputs: Sequence[str | None], _: int) -> Types:
    weight = inputs[1] or attributes.text("dtype", "float32")
    return Types((weight,), (inputs[0] or "float32", weight))


def _take(call: Call) -> Inferred:
    axis = call.axis(call.attributes.integer("axis", 0))
    data, index = call.data, call.input(1)
    return Inferred([(*data[:axis], *index, *data[axis + 1 :])], [data, index])


def _gather(call: Call) -> Inferred:
    depth, *rest = call.input(1)
    return Inferred([(*rest, *call.data[depth:])], call.inputs)


def _scatter(call: Call) -> Inferred:
    return Inferred([call.attributes.integers("shape")], call.inputs)


def _one_input_and_zeros(operator: str) -> Gradient:
    def gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
        reads = [gradients[0], node.inputs[1]]
        made = make(operator, node, reads, node.inputs[:1])
        return [Entry(made, 0), zeros_like(node, node.inputs[1])]

    return gradient


def _where(call: Call) -> Inferred:
    shape = call.inputs[1] or call.input(2)
    return Inferred([shape], [call.inputs[0] or shape, shape, shape])


def _where_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    condition, left, right = node.inputs
    zeros = zeros_like(node, condition)
    made = make("_backward_where", node, [gradients[0], condition], [left, right])
    return [zeros, *made.outputs()]


def second_types(_: Attributes, inputs: Sequence[str | None], num_outputs: int) -> Types:
    """Return types where the first input is a condition or an index of another type."""
    data = next((each for each in inputs[1:] if each is not None), "float32")
    return Types((data,) * num_outputs, (inputs[0] or "float32", *(data,) * (len(inputs) - 1)))


def first_types(_: Attributes, inputs: Sequence[str | None], num_outputs: int) -> Types:
    """Return types where later inputs are indices or lengths of another type."""
    data = inputs[0] or "float32"
    return Types((data,) * num_outputs, (data, *(each or "float32" for each in inputs[1:])))


def _one_hot(call: Call) -> Inferred:
    return Inferred([(*call.data, call.attributes.integer("depth"))], [call.data])


def _one_hot_types(attributes: Attributes, inputs: Sequence[str | None], _: int) -> Types:
    return Types((attributes.text("dtype", "float32"),), (inputs[0] or "float32",))


def _lengths(call: Call) -> list[Shape | None]:
    """Return input shapes of a sequence operator: a length for each sample."""
    axis = call.attributes.integer("axis", 0)
    shapes: list[Shape | None] = [call.data, (call.data[1 - axis],)]
    return shapes[: len(call.inputs)]


def _masked(call: Call) -> Inferred:
    return Inferred([call.data], _lengths(call))


def _last(call: Call) -> Inferred:
    axis = call.attributes.integer("axis", 0)
    shape = tuple(size for place, size in enumerate(call.data) if place != axis)
    return Inferred([shape], _lengths(call))


def _sequence_gradient(name: str, sharing: Sharing = NOTHING_SHARED) -> Gradient:
    def gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
        return backward(name, node, [gradients[0], *node.inputs[1:]], sharing=sharing)

    return gradient


OPERATORS: dict[str, Operator] = {
    "RNN": Operator(
        infer=_rnn,
        gradient=_rnn_gradient,
        outputs=_rnn_outputs,
        types=first_types,
        is_merged=False,
    ),
    "Embedding": Operator(
        infer=_embedding,
        gradient=from_one_input("_backward_Embedding", 0),
        types=_embedding_types,
    ),
    "take": Operator(infer=_take, gradient=from_one_input("_backward_take", 1), types=first_types),
    "gather_nd": Operator(
        infer=_gather, gradient=_one_input_and_zeros("_backward_gather_nd"), types=first_types
    ),
    "scatter_nd": Operator(
        infer=_scatter, gradient=_one_input_and_zeros("gather_nd"), types=first_types
    ),
    "where": Operator(infer=_where, gradient=_where_gradient, types=second_types),
    "one_hot": Operator(infer=_one_hot, gradient=zero_gradients, types=_one_hot_types),
    "batch_take": Operator(
        infer=lambda call: Inferred([call.input(1)], call.inputs), gradient=None
    ),
    "SequenceMask": Operator(
        infer=_masked,
        gradient=_sequence_gradient("_backward_SequenceMask", FIRST),
        sharing=FIRST,
        types=first_types,
        is_merged=False,
    ),
    "SequenceLast": Operator(
        infer=_last,
        gradient=_sequence_gradient("_backward_SequenceLast"),
        types=first_types,
        is_merged=False,
    ),
    "SequenceReverse": Operator(
        infer=_masked,
        gradient=_sequence_gradient("_backward_SequenceReverse"),
        types=first_types,
        is_merged=False,
    ),
}
