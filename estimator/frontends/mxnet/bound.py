"""A graph with everything it needs to run: forward nodes, backward nodes, its arguments.

    heads, what is trained -> Bound

Source: apache/mxnet@1.9.1 `src/executor/graph_executor.cc` (`InitFullGraph`, `FinishInitGraph`),
`src/imperative/cached_op.h` (`CreateFullGraph`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from estimator.frontends.mxnet.gradient import gradients_of
from estimator.frontends.mxnet.graph import Entry, Node, in_order
from estimator.frontends.mxnet.operators.table import operator_named
from estimator.frontends.mxnet.planner import Plan, plan, references_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A forward graph, and the backward one if it is trained."""

    heads: list[Entry]
    gradients: list[Entry]
    order: list[Node]
    """Every node, forward ones first."""
    num_forward: int
    trained: list[Node]
    states: list[Node]
    """Auxiliary states, which have no gradient."""

    @property
    def forward(self) -> list[Node]:
        """Return the nodes of the forward graph."""
        return self.order[: self.num_forward]

    @property
    def backward(self) -> list[Node]:
        """Return the nodes of the backward graph."""
        return self.order[self.num_forward :]

    def whole_plan(self) -> Plan:
        """Return the plan of an executor that is bound whole; gradients of parameters are its own.

        Source: `GraphExecutor::FinishInitGraph`.
        """
        references = references_of(self.order, [*self.heads, *self.gradients])
        return plan(self.order, references, self.gradients)


def states_of(order: Sequence[Node]) -> list[Node]:
    """Return the variables that operators write to."""
    found: dict[Node, None] = {}
    for node in order:
        if node.is_variable:
            continue
        for index in operator_named(node.operator, node.name).states:
            if index < len(node.inputs) and node.inputs[index].node.is_variable:
                found[node.inputs[index].node] = None
    return list(found)


def bind(
    heads: Sequence[Entry], inputs: frozenset[str], *, is_trained: bool, is_whole: bool = True
) -> Bound:
    """Return a graph whose shapes are known, ready to run.

    Every variable that is neither in *inputs* nor a state is trained.

    Raises:
        UnsupportedJobError: if it is trained and an operator has no gradient.
    """
    forward = in_order(heads)
    states = states_of(forward)
    fixed = set(states)
    trained = [
        node
        for node in forward
        if node.is_variable and node.name not in inputs and node not in fixed
    ]
    gradients: list[Entry] = []
    if is_trained:
        gradients = gradients_of(forward, heads, trained, is_bound=is_whole)
    order = in_order(gradients, after=forward)
    return Bound(
        heads=list(heads),
        gradients=gradients,
        order=order,
        num_forward=len(forward),
        trained=trained,
        states=states,
    )
