"""What the executor has to know of a graph before it runs it, counted once.

Graph -> Plan
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.frontends.tensorflow.graph import Graph, Node, TensorType
from estimator.frontends.tensorflow.operators import HOST, MOST_HOST_BYTES
from estimator.frontends.tensorflow.places import Scopes, Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A graph with its counts; entries are by node."""

    graph: Graph
    waits: tuple[int, ...]
    """How many edges a node waits for, control edges included."""
    followers: tuple[tuple[int, ...], ...]
    uses: tuple[tuple[int, ...], ...]
    """How many readers each output has, the caller's fetches included."""
    on_host: tuple[tuple[bool, ...], ...]
    """Whether each output stays on the host."""
    kinds: tuple[tuple[TensorType, ...], ...]
    """The types of each node's inputs."""
    spots: tuple[Spot, ...]
    roots: tuple[int, ...]


def plan_of(graph: Graph, scopes: Scopes) -> Plan:
    """Return the plan of *graph*."""
    waits = [len(node.inputs) + len(node.controls) for node in graph.nodes]
    followers: list[list[int]] = [[] for _ in graph.nodes]
    uses = [[0] * len(node.outputs) for node in graph.nodes]
    for number, node in enumerate(graph.nodes):
        for edge in node.inputs:
            uses[edge.node][edge.output] += 1
            followers[edge.node].append(number)
        for before in node.controls:
            followers[before].append(number)
    for edge in graph.fetches:
        uses[edge.node][edge.output] += 1
    return Plan(
        graph=graph,
        waits=tuple(waits),
        followers=tuple(map(tuple, followers)),
        uses=tuple(map(tuple, uses)),
        on_host=tuple(_on_host(node) for node in graph.nodes),
        kinds=tuple(
            tuple(graph.nodes[edge.node].outputs[edge.output] for edge in node.inputs)
            for node in graph.nodes
        ),
        spots=tuple(scopes.spots(graph)),
        roots=tuple(number for number, count in enumerate(waits) if count == 0),
    )


def _on_host(node: Node) -> tuple[bool, ...]:
    """Return whether each output of *node* lies in host memory.

    Kernels for cards keep 32-bit integers, which are shapes and counters, on the host. Large
    ones are data: token ids and labels.
    """
    if node.operator in HOST:
        return (True,) * len(node.outputs)
    return tuple(
        each.nbytes == 0
        or (
            each.dtype == "int32"
            and (node.operator == "Const" or (each.nbytes or 0) <= MOST_HOST_BYTES)
        )
        for each in node.outputs
    )
