"""TensorFlow's executor on buffers without bytes.

Graph, arguments -> allocations and frees of a Trace, in the order TensorFlow makes them

Nodes run first in, first out as their inputs become ready: kernels for a card are cheap to
launch and run in the thread that made them ready. An output's buffer is new, an input's alias,
or an input's that nobody else reads and that the kernel may write over. Inputs are let go before
the next node runs. Constants live as long as their kernel, so from the first step on.

Not modelled: several threads that start roots at once; what another order of equal nodes does.

Source: tensorflow/tensorflow@004301c860c784a9bbf32f073d228e3ba8fca492
tensorflow/core/kernels/constant_op.cc (`ConstantOp` holds its tensor). Recalled:
core/common_runtime/executor.cc (`Process`, `NodeDone`, `ScheduleReady`),
core/framework/op_kernel.cc (`forward_input`). `test_tensorflow_real.py` compares all of it with
TensorFlow 2.21 itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from estimator.errors import UnsupportedJobError
from estimator.frontends.tensorflow import flow, stored
from estimator.frontends.tensorflow.buffers import Buffer, Memory, Value, Variable
from estimator.frontends.tensorflow.call import Call
from estimator.frontends.tensorflow.convolutions import Calls
from estimator.frontends.tensorflow.folding import body_of
from estimator.frontends.tensorflow.graph import Graph
from estimator.frontends.tensorflow.hosted import Known, outputs_of
from estimator.frontends.tensorflow.operators import (
    ADD_N,
    ALIASES,
    BRANCHES,
    CALLS,
    CROSS_ENTROPY,
    FORWARDED,
    KNOWN,
    LISTS,
    LOOPS,
    SCATTERS,
    UPDATES,
)
from estimator.frontends.tensorflow.places import Scopes
from estimator.frontends.tensorflow.plan import Plan, plan_of
from estimator.notes import UnknownCode
from estimator.trace import Role

MAX_EVENTS = 8_000_000
"""Events of a trace: more is a loop that would not end in time."""

Rule = Callable[[Call], list[Value]]


@dataclass(slots=True, kw_only=True)
class Executor:
    """Runs graphs of one job, step by step. It is the `Engine` of the rules."""

    memory: Memory
    scopes: Scopes
    variables: Mapping[str, Variable]
    """Handle's node name -> variable."""
    calls: Calls
    """What convolutions take beside their outputs."""
    noted: Callable[[str, str], None]
    """Takes an operator, and why its figure is not certain."""
    step: int = 0
    _plans: dict[int, Plan] = field(default_factory=dict)
    _bodies: dict[str, Graph] = field(default_factory=dict)
    _constants: dict[tuple[int, int], Buffer] = field(default_factory=dict)
    _rules: dict[str, Rule] = field(init=False)

    def __post_init__(self) -> None:
        def each_of(operators: frozenset[str], rule: Callable[..., list[Value]]) -> dict[str, Rule]:
            return dict.fromkeys(operators, partial(rule, self))

        self._rules = {
            "Const": self._constant,
            "IdentityN": lambda call: list(call.inputs),
            "VarHandleOp": lambda call: [self.variables.get(call.node.name)],
            "ReadVariableOp": partial(stored.read, self),
            "AssignVariableOp": partial(stored.assign, self),
            "ZerosLike": partial(stored.zeros, self),
            ADD_N: partial(stored.added, self),
            **dict.fromkeys(ALIASES, lambda call: [call.inputs[0]]),
            **each_of(UPDATES | SCATTERS, stored.update),
            **each_of(CROSS_ENTROPY, stored.cross_entropy),
            **each_of(LISTS, stored.listed),
            **each_of(LOOPS, flow.loop),
            **each_of(BRANCHES, flow.branch),
            **each_of(CALLS, flow.called),
        }

    def load(self, graph: Graph) -> None:
        """Allocate the constants of *graph*, as making its kernels does."""
        plan = self._plan(graph)
        for number, node in enumerate(graph.nodes):
            if node.operator == "Const" and not plan.on_host[number][0]:
                self._constant_buffer(plan, number)

    def run(
        self, graph: Graph, arguments: Sequence[Value], known: Sequence[Known] = ()
    ) -> tuple[list[Value], list[Known]]:
        """Run *graph*; return what it fetches, and what the host knows of that.

        The caller hands over one reference to each of *arguments*, and gets one to each result.
        """
        plan = self._plan(graph)
        outputs: list[list[Value]] = [[]] * len(graph.nodes)
        facts: list[list[Known]] = [[]] * len(graph.nodes)
        waits = list(plan.waits)
        fed = {number: index for index, number in enumerate(graph.arguments) if number >= 0}
        ready = deque(plan.roots)
        while ready:
            number = ready.popleft()
            index = fed.get(number)
            if index is not None:
                outputs[number] = [arguments[index]]
                facts[number] = [known[index] if index < len(known) else None]
                self._publish(plan, number, outputs[number])
                self.memory.drop(arguments[index])
            else:
                edges = graph.nodes[number].inputs
                call = Call(
                    plan=plan,
                    number=number,
                    inputs=[outputs[edge.node][edge.output] for edge in edges],
                    known=[facts[edge.node][edge.output] for edge in edges],
                    role=plan.spots[number].role,
                )
                outputs[number] = self._process(call)
                facts[number] = call.results or outputs_of(call.node, call.known, call.kinds)
            for follower in plan.followers[number]:
                waits[follower] -= 1
                if not waits[follower]:
                    ready.append(follower)
        for index, number in enumerate(graph.arguments):
            if number < 0:
                self.memory.drop(arguments[index])
        return (
            [outputs[edge.node][edge.output] for edge in graph.fetches],
            [facts[edge.node][edge.output] for edge in graph.fetches],
        )

    def new(self, call: Call, output: int) -> Value:
        """Return a buffer for one output, None if it lies on the host."""
        if call.is_on_host(output):
            return None
        nbytes = call.node.outputs[output].nbytes
        if nbytes is None:
            nbytes = max((each.nbytes or 0 for each in call.kinds), default=0)
            self.note(
                call.node.operator,
                "the size of its result depends on values; taken as its largest input",
            )
        if len(self.memory.builder.kinds) > MAX_EVENTS:
            raise UnsupportedJobError(
                f"model: a step has more than {MAX_EVENTS} allocations",
                code=UnknownCode.FEATURE,
                path="model",
            )
        return self.memory.new(nbytes, call.role)

    def forward(self, call: Call, places: Sequence[int]) -> list[Value]:
        """Write over the first of the inputs at *places* that serves, else take new memory."""
        if call.is_on_host():
            return [None] * len(call.node.outputs)
        for place in places:
            if place < len(call.inputs) and call.is_free(place):
                return [call.inputs[place]]
        return [self.new(call, 0)]

    def body(self, graph: Graph, name: str) -> Graph:
        """Return the body of a function that *graph* calls."""
        body = self._bodies.get(name)
        if body is None:
            body = self._bodies[name] = body_of(graph.functions[name], graph.functions)
        return body

    def note(self, operator: str, reason: str) -> None:
        """Note why the figure of *operator* is not certain."""
        self.noted(operator, reason)

    def _process(self, call: Call) -> list[Value]:
        """Run one node: outputs, readers, then its inputs are let go."""
        spot = call.plan.spots[call.number]
        operator = spot.operator
        self.memory.builder.at(
            step=self.step, phase=spot.phase, operator=operator, module=spot.module
        )
        rule = self._rules.get(operator)
        if rule is not None:
            results = rule(call)
        elif operator in FORWARDED:
            results = self.forward(call, FORWARDED[operator])
        else:
            results = self._fresh(call)
        self._publish(call.plan, call.number, results)
        for value in call.inputs:
            self.memory.drop(value)
        return results

    def _publish(self, plan: Plan, number: int, results: Sequence[Value]) -> None:
        """Count the readers of what a node made; free what nobody reads."""
        for value, uses in zip(results, plan.uses[number], strict=True):
            if value is not None:
                value.refs += uses
        for value in results:
            self.memory.discard(value)

    def _plan(self, graph: Graph) -> Plan:
        plan = self._plans.get(id(graph))
        if plan is None:
            plan = self._plans[id(graph)] = plan_of(graph, self.scopes)
        return plan

    def _fresh(self, call: Call) -> list[Value]:
        """Return new outputs, and record what the kernel takes beside them."""
        node = call.node
        if node.operator not in KNOWN:
            self.note(node.operator, "what it takes beside its outputs is not modelled")
        results = [self.new(call, output) for output in range(len(node.outputs))]
        self.calls.record(node, call.kinds, self.memory.builder)
        return results

    def _constant(self, call: Call) -> list[Value]:
        return [None if call.is_on_host() else self._constant_buffer(call.plan, call.number)]

    def _constant_buffer(self, plan: Plan, number: int) -> Buffer:
        key = (id(plan.graph), number)
        buffer = self._constants.get(key)
        if buffer is None:
            nbytes = plan.graph.nodes[number].outputs[0].nbytes or 0
            buffer = self._constants[key] = self.memory.new(nbytes, Role.PARAMETER)
            self.memory.hold(buffer)
        return buffer
