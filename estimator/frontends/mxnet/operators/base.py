"""What a rule for an operator is: shapes, types, gradient, and what may share memory.

Call -> Inferred; Node, gradients of its outputs -> gradients of its inputs
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.errors import invalid
from estimator.frontends.mxnet.graph import NOTHING_SHARED, SHAPE_ONLY, Entry, Node, Shape, Sharing


@dataclass(slots=True)
class Call:
    """What is known of a node's tensors; None is unknown, a dimension of 0 too."""

    attributes: Attributes
    inputs: list[Shape | None]
    outputs: list[Shape | None]
    operator: str = ""

    @property
    def data(self) -> Shape:
        """Return the shape of the first input."""
        return self.input(0)

    def input(self, index: int) -> Shape:
        """Return the shape of an input.

        Raises:
            SpecError: if nothing gives it a shape.
        """
        shape = self.inputs[index] if index < len(self.inputs) else None
        if shape is None:
            raise self.wrong(f"input {index} has no known shape")
        return shape

    def axis(self, value: int, rank: int | None = None) -> int:
        """Return an axis of the first input counted from the front."""
        rank = len(self.data) if rank is None else rank
        if not -rank <= value < rank:
            raise self.wrong(f"axis {value} of a tensor of {rank} dimensions")
        return value % rank

    def wrong(self, message: str) -> Exception:
        """Return the refusal of this call."""
        return invalid(f"node '{self.attributes.name[:128]}' ({self.operator}): {message}")


@dataclass(frozen=True, slots=True)
class Inferred:
    """Shapes after a call: every output, and inputs the call decides (parameters)."""

    outputs: Sequence[Shape | None]
    inputs: Sequence[Shape | None] = ()


@dataclass(frozen=True, slots=True)
class Types:
    """Types of elements after a call."""

    outputs: Sequence[str]
    inputs: Sequence[str | None] = ()


Infer = Callable[[Call], Inferred]
TypeRule = Callable[[Attributes, Sequence[str | None], int], Types]
"""Attributes, types of inputs, number of outputs -> types."""
Gradient = Callable[[Node, Sequence[Entry]], "list[Entry]"]
Count = Callable[[Attributes], int]
SharingRule = Callable[[Attributes], Sharing]


def one(_: Attributes) -> int:
    """Return that there is one output."""
    return 1


def always(count: int) -> Count:
    """Return a rule for a fixed number of outputs."""
    return lambda _: count


def same_type(_: Attributes, inputs: Sequence[str | None], num_outputs: int) -> Types:
    """Return types where every tensor has that of the first input that is known.

    Source: apache/mxnet@1.9.1 `src/operator/elemwise_op_common.h` (`ElemwiseType`).
    """
    known = next((each for each in inputs if each is not None), "float32")
    return Types((known,) * num_outputs, (known,) * len(inputs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Everything the planner asks about an operator."""

    infer: Infer
    gradient: Gradient | None
    """None: the operator has none, and a graph that needs it cannot be bound."""
    outputs: Count = one
    types: TypeRule = same_type
    sharing: Sharing | SharingRule = NOTHING_SHARED
    states: tuple[int, ...] = ()
    """Inputs it writes: auxiliary states, which have no gradient."""
    is_partial: bool = False
    """It infers with unknown inputs too."""
    is_merged: bool = True
    """Two equal calls on equal inputs are one (it keeps no state and draws no numbers)."""

    def sharing_of(self, attributes: Attributes) -> Sharing:
        """Return what a call with *attributes* may share."""
        return self.sharing if isinstance(self.sharing, Sharing) else self.sharing(attributes)


ZEROS_LIKE = "zeros_like"
ZEROS = "_zeros"
NO_GRADIENT = "_NoGradient"


def make(
    operator: str,
    node: Node,
    inputs: Sequence[Entry],
    like: Sequence[Entry],
    *,
    name: str = "",
    sharing: Sharing = NOTHING_SHARED,
) -> Node:
    """Return a backward node of *node* with outputs shaped like the entries *like*."""
    return Node(
        operator=operator,
        name=name or f"{node.name}_backward",
        inputs=list(inputs),
        shapes=[entry.shape for entry in like],
        dtypes=[entry.dtype for entry in like],
        sharing=sharing,
        controls=[node],
        is_backward=True,
        forward=node,
    )


def zeros_like(node: Node, entry: Entry) -> Entry:
    """Return a gradient of zeros for one input."""
    zeros = make(ZEROS_LIKE, node, [entry], [entry], sharing=SHAPE_ONLY)
    return Entry(zeros, 0)


def no_gradient(node: Node) -> Entry:
    """Return the mark of an input that never has a gradient."""
    return Entry(Node(operator=NO_GRADIENT, name="NoGradient", is_backward=True, forward=node), 0)


def all_zero(gradients: Sequence[Entry]) -> bool:
    """Return whether every gradient is known to be zeros.

    Source: apache/mxnet@1.9.1 `src/operator/operator_common.h` (`CheckGradAllZero`).
    """
    return bool(gradients) and all(each.node.operator in (ZEROS, ZEROS_LIKE) for each in gradients)


def zero_gradients(node: Node, _: Sequence[Entry]) -> list[Entry]:
    """Return zeros for every input: the operator has no derivative.

    Source: apache/mxnet@1.9.1 `src/operator/operator_common.h` (`MakeZeroGradNodes`).
    """
    return [zeros_like(node, entry) for entry in node.inputs]


def backward(
    operator: str,
    node: Node,
    inputs: Sequence[Entry],
    *,
    sharing: Sharing = NOTHING_SHARED,
    like: Sequence[Entry] | None = None,
) -> list[Entry]:
    """Return one backward node, an output for each input of *node* (or each of *like*)."""
    made = make(operator, node, inputs, node.inputs if like is None else like, sharing=sharing)
    return made.outputs()
