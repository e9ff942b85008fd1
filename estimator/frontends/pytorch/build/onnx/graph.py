"""A forward graph as `model.config` holds it: `format: onnx`.

    model.config -> Graph, or every problem of it

Values are numbered: inputs first, then stored tensors, then the results of nodes in their order. A
node takes only what was before it, so the graph has no cycle. Who writes one: admission, from an
ONNX file; a person may too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from estimator.errors import Problem, SpecError
from estimator.spec.problems import problems_of
from estimator.spec.vocabulary import Part

FORMAT = "onnx"
ABSENT = -1
MAX_NODES = 16_384
MAX_LIST = 64
MAX_AXES = 16

Size = Annotated[int, Field(strict=True, ge=0, le=1 << 40)]
Label = Annotated[str, Field(max_length=1024)]
Number = Annotated[int, Field(strict=True, ge=ABSENT)]


class Value(Part):
    """An input: its open dimensions are names, which may be empty."""

    name: Label
    dtype: Label
    shape: Annotated[tuple[Size | Label, ...], Field(max_length=MAX_AXES)] = ()


class Stored(Part):
    """A tensor of the file: a weight, or numbers that say a shape."""

    name: Label = ""
    dtype: Label
    shape: Annotated[tuple[Size, ...], Field(max_length=MAX_AXES)] = ()
    values: Annotated[tuple[bool | int | float, ...], Field(max_length=MAX_LIST)] | None = None
    """All elements, if they are few and known."""
    constant: bool = False
    """Made by a node `Constant`: never trained."""

    @model_validator(mode="after")
    def _values_fit(self) -> Stored:
        if self.values is not None and len(self.values) != math.prod(self.shape):
            raise ValueError("there are not as many values as the shape has")
        return self


class Node(Part):
    """One operator: which values it takes, how many it makes."""

    op: Annotated[str, Field(min_length=1, max_length=300)]
    """The operator; of another domain than ONNX' own, with the domain and a dot before it."""
    inputs: Annotated[tuple[Number, ...], Field(max_length=MAX_LIST)] = ()
    outputs: Annotated[int, Field(strict=True, ge=1, le=MAX_LIST)] = 1
    attributes: dict[str, Any] = Field(default_factory=dict)


class Graph(Part):
    """Inputs, stored tensors, nodes in an order they can run in, and what comes out."""

    format: Literal["onnx"]
    opset: Annotated[int, Field(strict=True, ge=0, le=10_000)] = 0
    """Version of the operator set; 0: not told, the newest rules are taken."""
    producer: Label = ""
    inputs: Annotated[tuple[Value, ...], Field(min_length=1, max_length=MAX_LIST)]
    tensors: Annotated[tuple[Stored, ...], Field(max_length=MAX_NODES)] = ()
    nodes: Annotated[tuple[Node, ...], Field(min_length=1, max_length=MAX_NODES)]
    outputs: Annotated[tuple[Number, ...], Field(min_length=1, max_length=MAX_LIST)]

    @model_validator(mode="after")
    def _is_ordered(self) -> Graph:
        count = self.first_result
        for index, node in enumerate(self.nodes):
            if max(node.inputs, default=ABSENT) >= count:
                raise ValueError(f"nodes[{index}].inputs: takes a value that no node before makes")
            count += node.outputs
        if not all(0 <= number < count for number in self.outputs):
            raise ValueError("outputs: names a value that no node makes")
        return self

    @property
    def first_result(self) -> int:
        """Return the number of the first result of the first node."""
        return len(self.inputs) + len(self.tensors)


def is_graph(config: Mapping[str, Any]) -> bool:
    """Return whether *config* means to be such a graph."""
    return config.get("format") == FORMAT


def parse_graph(config: Mapping[str, Any]) -> Graph:
    """Return the graph of *config*.

    Raises:
        SpecError: with every problem of it.
    """
    try:
        return Graph.model_validate(config)
    except ValidationError as error:
        raise SpecError(
            [
                Problem(path=f"model.config.{problem.path}".rstrip("."), message=problem.message)
                for problem in problems_of(error)
            ]
        ) from error
