"""A Gluon training loop: hybridised, hybridised with static memory, or operator by operator.

    net, loss -> events of one step

A hybridised net has two plans, one for forward and one for backward, and what it computes, the
gradients and the loss are arrays of their own. Source: apache/mxnet@1.9.1
`src/imperative/cached_op.{h,cc}` (`SetForwardGraph`, `SetBackwardGraph`, `DynamicForward`,
`StaticAllocMemory`), `imperative.cc` (`RecordOp`, `Backward`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from estimator.frontends.mxnet.bound import Bound
from estimator.frontends.mxnet.events import Recorder
from estimator.frontends.mxnet.graph import Key
from estimator.frontends.mxnet.job import Execution
from estimator.frontends.mxnet.planner import Plan, plan, references_of
from estimator.frontends.mxnet.runs import Run, take_turns, turns_of, unshared
from estimator.trace import Phase, Role


class Graph:
    """One graph of a loop, its plans and what they hold."""

    def __init__(self, recorder: Recorder, bound: Bound, execution: Execution) -> None:
        self.recorder = recorder
        self.bound = bound
        self.counted = _references(bound)
        keeps = execution is Execution.STATIC
        is_planned = execution is not Execution.IMPERATIVE
        forward, backward = _plans(bound, self.counted if is_planned else None)
        self.forward_run = Run(recorder, forward, keeps=keeps)
        self.backward_run = Run(recorder, backward, keeps=keeps)
        references = dict(self.counted)
        self.forward_turns = turns_of(bound.forward, references, self.forward_run)
        self.backward_turns = turns_of(
            bound.backward, references, self.backward_run, others=(self.forward_run,)
        )
        self.outputs: list[int] = []

    def forward(self) -> None:
        """Record a forward; what it returned a step ago is let go of once it is replaced."""
        before = self.outputs
        self.outputs = [
            self.recorder.alloc(head.nbytes, Role.ACTIVATION)
            for head in self.bound.heads
            if not head.node.is_variable
        ]
        take_turns(self.forward_run, self.forward_turns, Role.ACTIVATION, self.counted)
        for tensor in before:
            self.recorder.free(tensor)

    def backward(self) -> None:
        """Record a backward, which lets go of what its forward kept."""
        take_turns(self.backward_run, self.backward_turns, Role.TEMPORARY, self.counted)


def _references(bound: Bound) -> dict[Key, int]:
    """Return the references of both graphs, inputs and outputs counted once more."""
    counted = references_of(bound.order, [*bound.heads, *bound.gradients], counts_ignored=True)
    for node in bound.forward:
        if node.is_variable:
            counted[node, 0] = counted.get((node, 0), 0) + 1
    return counted


def _plans(bound: Bound, references: Mapping[Key, int] | None) -> tuple[Plan, Plan]:
    """Return the plans of forward and backward; what crosses between them is external.

    Without *references* nothing is planned: every output has a block of its own.
    """
    inner = [entry for node in bound.forward for entry in node.outputs()]
    fed = [entry for node in bound.order if node.is_variable for entry in node.outputs()]
    first, second = [*fed, *bound.heads], [*fed, *inner, *bound.gradients]
    if references is None:
        return unshared(bound.forward, first), unshared(bound.backward, second)
    return plan(bound.forward, references, first), plan(bound.backward, references, second)


class Loop:
    """The steps of a loop: batch, net, loss, backward."""

    def __init__(
        self, recorder: Recorder, graphs: Sequence[Graph], batch: Sequence[int], *, trains: bool
    ) -> None:
        self.recorder = recorder
        self.graphs = graphs
        self.batch = batch
        """Bytes of what is fed."""
        self.trains = trains
        self.fed: list[int] = []

    def step(self, step: int) -> None:
        """Record one step up to the gradients."""
        recorder = self.recorder
        recorder.enter(Phase.FORWARD, step=step)
        before = self.fed
        self.fed = [recorder.alloc(nbytes, Role.INPUT) for nbytes in self.batch]
        for tensor in before:
            recorder.free(tensor)
        for graph in self.graphs:
            recorder.enter(Phase.FORWARD)
            graph.forward()
        if not self.trains:
            return
        recorder.enter(Phase.BACKWARD)
        last = self.graphs[-1].bound
        handed = [recorder.alloc(head.nbytes, Role.GRADIENT) for head in last.heads]
        for index, graph in reversed(list(enumerate(self.graphs))):
            received = [
                recorder.alloc(gradient.nbytes, Role.GRADIENT)
                for gradient in (graph.bound.gradients if index else [])
            ]
            graph.backward()
            for tensor in handed:
                recorder.free(tensor)
            handed = received
