"""Calls, branches and loops: bodies that run in place of a node.

Call -> outputs, after its body has run

TensorFlow lowers them into the same executor and interleaves what is independent; here a body
runs as a whole. Of a branch the host cannot tell the longer side is taken: the finite gradients
of loss scaling, the update of gradient accumulation.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.frontends.tensorflow.buffers import Value
from estimator.frontends.tensorflow.call import Call, Engine
from estimator.frontends.tensorflow.graph import Graph, Node
from estimator.frontends.tensorflow.hosted import Known, outputs_of

MAX_TURNS = 1 << 16
FUNCTIONS = ("f", "then_branch", "else_branch", "body", "cond")
"""Attributes that name a function."""


def called(engine: Engine, call: Call) -> list[Value]:
    """Run a function in place of its call."""
    return _inline(engine, call, call.node.attributes["f"].func.name, call.inputs, call.known)


def branch(engine: Engine, call: Call) -> list[Value]:
    """Run the side the host knows is taken, else the longer one."""
    graph = call.plan.graph
    sides = [call.node.attributes[key].func.name for key in ("then_branch", "else_branch")]
    condition = call.known[0]
    if condition is not None:
        name = sides[0] if bool(condition) else sides[1]
    else:
        name = max(sides, key=lambda each: _length(engine, graph, each))
    engine.memory.drop(call.inputs[0])
    return _inline(engine, call, name, call.inputs[1:], call.known[1:])


def loop(engine: Engine, call: Call) -> list[Value]:
    """Run a loop as often as the host can tell, once if it cannot."""
    graph, attributes = call.plan.graph, call.node.attributes
    condition = engine.body(graph, attributes["cond"].func.name)
    body = engine.body(graph, attributes["body"].func.name)
    carried, known = list(call.inputs), list(call.known)
    for turn in range(MAX_TURNS):
        goes_on = _holds(condition, known)
        if goes_on is None and turn == 0:
            engine.note(call.node.operator, "how often it runs is not known; taken as once")
        elif not goes_on:
            break
        carried, known = engine.run(body, carried, known)
    return _returned(call, carried, known)


def _inline(
    engine: Engine, call: Call, name: str, arguments: Sequence[Value], known: Sequence[Known]
) -> list[Value]:
    """Run a function; its fetches are the call's outputs."""
    return _returned(call, *engine.run(engine.body(call.plan.graph, name), arguments, known))


def _returned(call: Call, results: list[Value], known: list[Known]) -> list[Value]:
    """Hand fetched values on without the reference the caller held to each.

    The inputs were handed over to the body.
    """
    call.inputs = []
    call.results = known
    for value in results:
        if value is not None:
            value.refs -= 1
    return results


def _holds(condition: Graph, known: Sequence[Known]) -> bool | None:
    """Return whether a loop's condition holds, None if the host does not know."""
    facts: list[list[Known]] = []
    fed = {number: index for index, number in enumerate(condition.arguments) if number >= 0}
    for number, node in enumerate(condition.nodes):
        index = fed.get(number)
        if index is not None:
            facts.append([known[index]])
            continue
        seen = [facts[edge.node][edge.output] for edge in node.inputs]
        kinds = [condition.nodes[edge.node].outputs[edge.output] for edge in node.inputs]
        facts.append(outputs_of(node, seen, kinds))
    (edge, *_) = condition.fetches
    found = facts[edge.node][edge.output]
    return None if found is None else bool(found)


def _length(engine: Engine, graph: Graph, name: str) -> int:
    """Return how many nodes a function has, those it calls included."""
    return sum(
        1 + sum(_length(engine, graph, each) for each in _names(node))
        for node in engine.body(graph, name).nodes
    )


def _names(node: Node) -> list[str]:
    return [node.attributes[key].func.name for key in FUNCTIONS if key in node.attributes]
