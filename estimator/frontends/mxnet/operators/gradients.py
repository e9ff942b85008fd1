"""The usual forms of a gradient: which of a call's tensors its backward reads.

    name of the backward operator, Sharing -> Gradient

Source: apache/mxnet@1.9.1 `src/operator/elemwise_op_common.h` (`ElemwiseGradUseNone`,
`…UseIn`, `…UseOut`, `…UseInOut`) and `operator_common.h` (`MakeNonlossGradNode`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from estimator.frontends.mxnet.graph import NOTHING_SHARED, Entry, Node, Sharing
from estimator.frontends.mxnet.operators.base import Gradient, all_zero, backward, zero_gradients

Reads = Callable[[Node], Sequence[Entry]]


def _form(operator: str, sharing: Sharing, reads: Reads) -> Gradient:
    def gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
        if all_zero(gradients):
            return zero_gradients(node, gradients)
        return backward(operator, node, [*gradients, *reads(node)], sharing=sharing)

    return gradient


def _nothing(_: Node) -> Sequence[Entry]:
    return ()


def from_nothing(operator: str, sharing: Sharing = NOTHING_SHARED) -> Gradient:
    """Return a gradient that reads the gradients of the outputs only."""
    return _form(operator, sharing, _nothing)


def from_inputs(operator: str, sharing: Sharing = NOTHING_SHARED) -> Gradient:
    """Return a gradient that reads the inputs too."""
    return _form(operator, sharing, lambda node: node.inputs)


def from_outputs(operator: str, sharing: Sharing = NOTHING_SHARED) -> Gradient:
    """Return a gradient that reads the outputs too."""
    return _form(operator, sharing, Node.outputs)


def from_one_input(operator: str, index: int, sharing: Sharing = NOTHING_SHARED) -> Gradient:
    """Return a gradient that reads one of the inputs too."""
    return _form(operator, sharing, lambda node: (node.inputs[index],))


def from_both(operator: str, sharing: Sharing = NOTHING_SHARED) -> Gradient:
    """Return a gradient that reads inputs and outputs; zeros do not stop it."""

    def gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
        return backward(
            operator, node, [*gradients, *node.inputs, *node.outputs()], sharing=sharing
        )

    return gradient


def from_input_and_output(operator: str) -> Gradient:
    """Return a gradient that reads the first input and the first output.

    Source: apache/mxnet@1.9.1 `src/operator/tensor/broadcast_reduce_op.h` (`ReduceGrad`).
    """
    return _form(operator, NOTHING_SHARED, lambda node: (node.inputs[0], Entry(node, 0)))


def passed_on(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    """Return the gradient itself for every input, without a node.

    Source: apache/mxnet@1.9.1 `src/operator/elemwise_op_common.h` (`CloneGradient`).
    """
    return [gradients[0]] * len(node.inputs)
