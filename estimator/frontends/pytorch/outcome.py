"""Remember what an operator's results look like, so that its shape rule runs once.

    operator, argument facts -> result facts

Only for operators whose results are new memory. The shape rules (in Python for batch norm, layer
norm and others) take most of a trace's time without this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

META = torch.device("meta")

Facts = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
"""Shape, strides, dtype of one result."""


class HostTensor(Exception):
    """An argument is a real tensor with an axis: the caller has to sort it out first."""


def key_of(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return what decides an operator's results: tensor facts and plain values.

    Raises:
        HostTensor: if a real tensor of one or more axes is among them.
        TypeError: later, when hashed, if a value cannot be hashed.
    """
    parts: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            if not value.is_meta and value.dim():
                raise HostTensor
            parts.append((value.shape, value.stride(), value.dtype))
        elif value is None or value is True or value is False:
            parts.append((value,))
        elif isinstance(value, (list, tuple)):
            parts.append(key_of(value))
        else:
            parts.append(value.__class__)
            parts.append(value)
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of one call: facts of each tensor, other values as they are."""

    parts: tuple[tuple[Facts, int] | None, ...]
    """Per result: facts and bytes; None stands for no tensor."""
    kind: type[Any] | None
    """`tuple` or `list`; None: a single tensor."""

    def make(self) -> Any:
        """Return new stand-in tensors that look like the results."""
        made = [
            None
            if part is None
            else torch.empty_strided(part[0][0], part[0][1], dtype=part[0][2], device=META)
            for part in self.parts
        ]
        return made[0] if self.kind is None else self.kind(made)


def outcome_of(result: Any) -> Outcome | None:
    """Return *result* as facts, or None if new tensors would not look like it."""
    if isinstance(result, torch.Tensor):
        part = _part(result)
        return None if part is None else Outcome(parts=(part,), kind=None)
    if not isinstance(result, (tuple, list)):
        return None
    parts: list[tuple[Facts, int] | None] = []
    for value in result:
        if value is None:
            parts.append(None)
            continue
        part = _part(value) if isinstance(value, torch.Tensor) else None
        if part is None:
            return None
        parts.append(part)
    return Outcome(parts=tuple(parts), kind=list if isinstance(result, list) else tuple)


def _part(tensor: torch.Tensor) -> tuple[Facts, int] | None:
    if not tensor.is_meta or tensor.is_complex() or tensor.storage_offset():
        return None
    shape, strides = tuple(tensor.shape), tensor.stride()
    nbytes = tensor.untyped_storage().nbytes()
    if not tensor.numel():
        return ((shape, strides, tensor.dtype), 0) if nbytes == 0 else None
    span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return ((shape, strides, tensor.dtype), nbytes) if span * tensor.itemsize == nbytes else None
