"""Where in a step each operation belongs: phase, layer, and the role of what it makes.

Graph, order of tracing -> Place of each node
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.frontends.tensorflow.graph import Graph
from estimator.trace import Phase, Role

GRADIENT_SCOPE = "gradient_tape/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Phase, operator and layer of one node, and the role of its outputs."""

    phase: Phase
    operator: str
    module: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Scopes:
    """How names of a traced step tell its parts apart."""

    model: str = ""
    optimizer: str = ""
    """Scope of the optimizer's operations; empty: there is none."""
    whole: Phase = Phase.FORWARD
    """The phase of a step without gradients."""

    def spots(self, graph: Graph) -> list[Spot]:
        """Return the spot of each node of *graph*.

        Nodes are in the order they were traced. A step is traced forward, backward, update:
        operations without a scope of their own belong to the part they were traced in.
        """
        phases = self._phases(graph)
        updated = {
            edge.node
            for node, phase in zip(graph.nodes, phases, strict=True)
            if phase is Phase.OPTIMIZER
            for edge in node.inputs
        }
        return [
            Spot(
                phase=phase,
                operator=node.operator,
                module=self._module(node.name),
                role=_role(phase, is_updated=index in updated),
            )
            for index, (node, phase) in enumerate(zip(graph.nodes, phases, strict=True))
        ]

    def _phases(self, graph: Graph) -> list[Phase]:
        phases = []
        now = self.whole
        for node in graph.nodes:
            if node.name.startswith(GRADIENT_SCOPE):
                now = Phase.BACKWARD
            elif self.optimizer and node.name.startswith(f"{self.optimizer}/"):
                now = Phase.OPTIMIZER
            phases.append(now)
        return phases

    def _module(self, name: str) -> str:
        """Return the layer in *name*: `gradient_tape/resnet50_1/conv1_1/Reshape` -> `conv1_1`."""
        parts = name.removeprefix(GRADIENT_SCOPE).split("/")[:-1]
        if self.model and len(parts) > 1 and parts[0].startswith(self.model):
            return parts[1]
        return parts[0] if parts else ""


def _role(phase: Phase, *, is_updated: bool) -> Role:
    if phase is Phase.BACKWARD:
        return Role.GRADIENT if is_updated else Role.TEMPORARY
    return Role.TEMPORARY if phase is Phase.OPTIMIZER else Role.ACTIVATION
