"""One node being run, and what a rule may ask of the executor that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from estimator.frontends.tensorflow.buffers import Buffer, Memory, Value
from estimator.frontends.tensorflow.graph import Graph, Node, TensorType
from estimator.frontends.tensorflow.hosted import Known
from estimator.frontends.tensorflow.plan import Plan
from estimator.trace import Role


@dataclass(slots=True, kw_only=True)
class Call:
    """One node being run: its inputs, and what the host knows of them."""

    plan: Plan
    number: int
    inputs: list[Value]
    known: list[Known]
    role: Role
    """Of what it makes."""
    results: list[Known] | None = None
    """What the host knows of its outputs, if a rule found out."""

    @property
    def node(self) -> Node:
        """The node."""
        return self.plan.graph.nodes[self.number]

    @property
    def kinds(self) -> Sequence[TensorType]:
        """The types of its inputs."""
        return self.plan.kinds[self.number]

    def is_on_host(self, output: int = 0) -> bool:
        """Return whether an output lies in host memory."""
        return self.plan.on_host[self.number][output]

    def is_free(self, place: int) -> bool:
        """Return whether the first output may be written over the input at *place*.

        Nobody else may read it, and both have as many elements of one dtype.
        """
        value = self.inputs[place]
        given, made = self.kinds[place], self.node.outputs[0]
        return (
            isinstance(value, Buffer)
            and value.refs == 1
            and given.dtype == made.dtype
            and given.elements is not None
            and given.elements == made.elements
        )


class Engine(Protocol):
    """What rules ask of the executor."""

    memory: Memory

    def new(self, call: Call, output: int) -> Value:
        """Return a buffer for one output, None if it lies on the host."""
        ...

    def forward(self, call: Call, places: Sequence[int]) -> list[Value]:
        """Write over the first of the inputs at *places* that serves, else take new memory."""
        ...

    def run(
        self, graph: Graph, arguments: Sequence[Value], known: Sequence[Known] = ()
    ) -> tuple[list[Value], list[Known]]:
        """Run *graph*; return what it fetches, and what the host knows of that."""
        ...

    def body(self, graph: Graph, name: str) -> Graph:
        """Return the body of a function that *graph* calls."""
        ...

    def note(self, operator: str, reason: str) -> None:
        """Note why the figure of *operator* is not certain."""
        ...
