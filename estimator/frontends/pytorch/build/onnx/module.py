"""A graph as a module of torch, whose forward pass walks the nodes.

    Graph -> nn.Module

Autograd, optimizers and the rules of cards see the same operators as of any model. Each value is
let go of after the last node that takes it, as local variables of a model are when they are
assigned anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

from estimator.frontends.pytorch.build.job import REFUSALS, short, stand_in
from estimator.frontends.pytorch.build.onnx.call import Call, Settings, unsupported
from estimator.frontends.pytorch.build.onnx.choosing import CHOICES
from estimator.frontends.pytorch.build.onnx.elementwise import ELEMENTWISE
from estimator.frontends.pytorch.build.onnx.graph import ABSENT, Graph, Node
from estimator.frontends.pytorch.build.onnx.layers import LAYERS
from estimator.frontends.pytorch.build.onnx.shapes import MAX_KNOWN, SHAPES
from estimator.frontends.pytorch.build.onnx.weights import Kind, kinds_of, main_type

OPERATORS: Mapping[str, Any] = {**ELEMENTWISE, **LAYERS, **SHAPES, **CHOICES}
"""Operators that are modelled, of ONNX' own domain."""
_OF_SHAPE = ("Shape", "Size")
"""Operators that ask a tensor for its shape alone: no work on the card."""
_MAX_NAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    node: Node
    first: int
    """The number of its first result."""
    frees: tuple[int, ...]
    """Values that nobody takes later, its own unused results among them."""


class GraphModule(nn.Module):
    """Runs a graph on tensors, in the order of its inputs."""

    def __init__(self, graph: Graph, dtype: torch.dtype) -> None:
        super().__init__()
        require_known(graph)
        self.graph = graph
        self.settings = Settings(opset=graph.opset, main=main_type(graph), dtype=dtype)
        self.exported_batch = 0
        self._names: dict[int, str] = {}
        self._host: dict[int, torch.Tensor] = {}
        for index, (tensor, kind) in enumerate(zip(graph.tensors, kinds_of(graph), strict=True)):
            number = len(graph.inputs) + index
            kept_type = self.settings.type_of(tensor.dtype)
            if kind is Kind.NUMBERS:
                with _disable_current_modes():
                    made = torch.tensor(tensor.values, dtype=kept_type)
                    self._host[number] = made.reshape(tensor.shape)
                continue
            name = f"{index}_{re.sub('[^A-Za-z0-9_]', '_', tensor.name)[-80:]}"
            self._names[number] = name
            kept = stand_in(*tensor.shape, dtype=kept_type)
            if kind is Kind.TRAINED:
                self.register_parameter(name, nn.Parameter(kept))
            else:
                self.register_buffer(name, kept)
        self._steps = _steps(graph)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the outputs of the graph.

        Raises:
            UnsupportedJobError: naming the first node that does not take what it is given.
        """
        values: dict[int, torch.Tensor] = dict(enumerate(inputs))
        values |= self._host
        values |= {number: getattr(self, name) for number, name in self._names.items()}
        batch = inputs[0].shape[0] if inputs[0].dim() else 0
        for step in self._steps:
            self._run(step, values, batch)
        return tuple(_on_card(values[number]) for number in self.graph.outputs)

    def _run(self, step: _Step, values: dict[int, torch.Tensor], batch: int) -> None:
        node = step.node
        call = Call(
            node=node,
            inputs=[None if n == ABSENT else values.get(n) for n in node.inputs],
            settings=self.settings,
            is_training=self.training,
            exported_batch=self.exported_batch,
            batch=batch,
        )
        try:
            made = _called(call)
        except REFUSALS as error:
            raise unsupported(
                f"operator '{node.op:.100}' does not take what it is given: {short(error)}"
            ) from error
        results = [made] if isinstance(made, torch.Tensor) else [*made]
        del call, made
        for index, result in enumerate(results[: node.outputs]):
            values[step.first + index] = result
        results.clear()
        for number in step.frees:
            values.pop(number, None)


def require_known(graph: Graph) -> None:
    """Refuse a graph with operators that are not modelled.

    Raises:
        UnsupportedJobError: naming them.
    """
    unknown = sorted({node.op for node in graph.nodes} - OPERATORS.keys())
    if unknown:
        named = ", ".join(f"'{name:.100}'" for name in unknown[:_MAX_NAMED])
        more = f" and {len(unknown) - _MAX_NAMED} more" if len(unknown) > _MAX_NAMED else ""
        raise unsupported(f"operators of the ONNX graph are not modelled: {named}{more}")


def _called(call: Call) -> Any:
    run = OPERATORS[call.node.op]
    if not call.on_host and call.node.op not in _OF_SHAPE:
        return run(call)
    with _disable_current_modes(), torch.no_grad():
        made = run(call)
    if isinstance(made, torch.Tensor) and made.numel() > MAX_KNOWN:
        return _on_card(made)
    return made


def _on_card(value: torch.Tensor) -> torch.Tensor:
    return value if value.is_meta else stand_in(*value.shape, dtype=value.dtype)


def _steps(graph: Graph) -> list[_Step]:
    """Return the nodes whose results somebody takes, with what each is the last to take."""
    firsts, count = [], graph.first_result
    for node in graph.nodes:
        firsts.append(count)
        count += node.outputs
    taken = set(graph.outputs)
    steps = []
    for node, first in zip(reversed(graph.nodes), reversed(firsts), strict=True):
        own = range(first, first + node.outputs)
        unused = [number for number in own if number not in taken]
        if len(unused) == node.outputs:
            continue
        last = [number for number in dict.fromkeys(node.inputs) if number not in taken]
        taken.update(node.inputs)
        steps.append(_Step(node=node, first=first, frees=(*unused, *last)))
    steps.reverse()
    return steps
