"""What an operator of a graph is given, and how it asks for it.

    node, values -> tensors, numbers, attributes

A value is a stand-in for a tensor on the card, or a host tensor whose numbers are known: shapes and
what is computed of them. Operators whose inputs are all known run on the host, as the Python of a
model does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from estimator.errors import UnsupportedJobError
from estimator.frontends.pytorch.build.job import stand_in
from estimator.frontends.pytorch.build.onnx.graph import Node
from estimator.notes import UnknownCode

MAIN = "float32"
DTYPES = {
    "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16,
    "float64": torch.float64, "int64": torch.int64, "int32": torch.int32, "int16": torch.int16,
    "int8": torch.int8, "uint8": torch.uint8, "bool": torch.bool,
}  # fmt: skip
NUMBERED = {
    1: "float32", 2: "uint8", 3: "int8", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
    10: "float16", 11: "float64", 16: "bfloat16",
}  # fmt: skip
"""`TensorProto.DataType` as attributes have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a whole graph runs with."""

    opset: int
    main: str
    """The type most weights of the file have: the job's precision takes its place."""
    dtype: torch.dtype
    """The type that takes its place."""

    def type_of(self, name: str) -> torch.dtype:
        """Return the type called *name*, as this job has it.

        Raises:
            UnsupportedJobError: if torch has none, or no weights of it.
        """
        if name == self.main:
            return self.dtype
        if name not in DTYPES:
            raise unsupported(f"values of {name or 'no'} type are not modelled")
        return DTYPES[name]


@dataclass(slots=True, kw_only=True)
class Call:
    """One run of one node."""

    node: Node
    inputs: list[torch.Tensor | None]
    settings: Settings
    is_training: bool = False
    exported_batch: int = 0
    """The batch the graph was exported with, where it is written into its shapes; else 0."""
    batch: int = 0
    """The batch it runs with."""
    on_host: bool = field(init=False)

    def __post_init__(self) -> None:
        self.on_host = all(each is None or not each.is_meta for each in self.inputs)

    def __len__(self) -> int:
        return sum(each is not None for each in self.inputs)

    def has(self, index: int) -> bool:
        """Return whether input *index* is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def given(self, index: int) -> torch.Tensor:
        """Return input *index*, wherever it is.

        Raises:
            UnsupportedJobError: if it is not given.
        """
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise self.refused(f"has no input {index}")
        return found

    def tensor(self, index: int = 0) -> torch.Tensor:
        """Return input *index* on the card, or on the host if everything is there."""
        found = self.given(index)
        if self.on_host or found.is_meta:
            return found
        return stand_in(*found.shape, dtype=found.dtype)

    def optional(self, index: int) -> torch.Tensor | None:
        """Return input *index* as `tensor` does, or None."""
        return self.tensor(index) if self.has(index) else None

    def operand(self, index: int) -> Any:
        """Return input *index*, a single known number as just that: it takes no memory."""
        found = self.given(index)
        if not self.on_host and not found.is_meta and found.numel() == 1:
            return found.reshape(()).item()
        return self.tensor(index)

    def numbers(self, index: int) -> list[Any] | None:
        """Return the numbers of input *index*, None if it is not given.

        Raises:
            UnsupportedJobError: if they are not known before the job runs.
        """
        if not self.has(index):
            return None
        found = self.given(index)
        if found.is_meta:
            raise self.refused(f"takes a shape or limit (input {index}) that depends on values")
        return list(found.reshape(-1).tolist())

    def first(self, index: int) -> int:
        """Return the one whole number that input *index* is."""
        found = self.numbers(index)
        if not found:
            raise self.refused(f"has no number as input {index}")
        return int(found[0])

    def axes(self, index: int, name: str = "axes") -> list[int] | None:
        """Return what newer operator sets give as input *index*, older ones as attribute *name*."""
        found = self.numbers(index)
        return self.whole_list(name) if found is None else [int(each) for each in found]

    def whole(self, name: str, default: int) -> int:
        """Return a whole number of the attributes."""
        return int(self._attribute(name, default, int))

    def fraction(self, name: str, default: float) -> float:
        """Return a number of the attributes."""
        return float(self._attribute(name, default, (int, float)))

    def word(self, name: str, default: str) -> str:
        """Return a text of the attributes."""
        return str(self._attribute(name, default, str))

    def whole_list(self, name: str) -> list[int] | None:
        """Return a list of whole numbers of the attributes, or None."""
        found = self._attribute(name, None, list)
        if found is None:
            return None
        if not all(type(each) is int for each in found):
            raise self.refused(f"has an attribute {name:.40} that is no list of whole numbers")
        return [*found]

    def _attribute(self, name: str, default: Any, kind: Any) -> Any:
        found = self.node.attributes.get(name)
        if found is None:
            return default
        if not isinstance(found, kind):
            raise self.refused(f"has an attribute {name:.40} of another type")
        return found

    def refused(self, reason: str) -> UnsupportedJobError:
        """Return the error of this node."""
        return unsupported(f"operator '{self.node.op:.100}' {reason}")


def unsupported(reason: str) -> UnsupportedJobError:
    """Return the error for a graph that cannot be walked."""
    return UnsupportedJobError(
        f"model.config: {reason}", code=UnknownCode.OPERATOR, path="model.config"
    )


Result = torch.Tensor | Sequence[torch.Tensor]
