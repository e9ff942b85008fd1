"""What the recorder has to know of an operator, learnt from its schema once.

OpOverload -> Operator
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from estimator.frontends.pytorch.contents import FOLLOWED

aten = torch.ops.aten

CONSTANTS = frozenset(
    {
        aten.linspace.default,
        aten.arange.default,
        aten.arange.start,
        aten.arange.start_step,
        aten.scalar_tensor.default,
    }
)
"""Factories whose small results models read while they are built: run for real."""

FACTORIES = frozenset(
    {
        aten.empty.memory_format,
        aten.empty_strided.default,
        aten.zeros.default,
        aten.ones.default,
        aten.full.default,
        aten.rand.default,
        aten.randn.default,
        aten.randint.default,
        aten.randint.low,
        aten.randperm.default,
        aten.eye.default,
        aten.eye.m,
        aten.tril_indices.default,
        aten.triu_indices.default,
        aten.hann_window.default,
        aten.hann_window.periodic,
        *CONSTANTS,
    }
)
"""Operators that make a tensor from numbers alone."""

READS = frozenset({aten._local_scalar_dense.default, aten.equal.default})
"""Operators that read a value, which a trace does not have."""

RENAMED = frozenset({"aten::_unsafe_view", "aten::_reshape_copy", "aten::lift_fresh"})
"""Operators that may return their input's memory although the schema does not say so."""


@dataclass(slots=True)
class Operator:
    """One overload: its name for people and what its results share with its arguments."""

    name: str
    aliases: bool
    """Every result is a view of, or is, an argument: no new memory."""
    fresh: bool
    """Every result is new memory whose size the arguments decide: may be remembered."""
    is_factory: bool
    is_constant: bool
    is_read: bool
    is_sum: bool
    """`a + b`, which the autograd engine may do in place."""
    may_leave: bool
    """A copy that may go to the host."""
    is_followed: bool
    """Something may be known of its result's values (`contents.py`)."""
    depends_on_values: bool = False
    """Its result, or its result's size, depends on values (`bounds.py`)."""
    memory: dict[Any, Any] = field(default_factory=dict)
    """Argument facts -> what the results look like (`outcome.py`)."""


def operator_of(overload: Any) -> Operator:
    """Return what *overload*'s schema says of its results."""
    schema = overload._schema
    returns = schema.returns
    shared = [value.alias_info is not None for value in returns]
    namespace, _, name = schema.name.partition("::")
    return Operator(
        name=f"{namespace}.{name}",
        aliases=all(shared),
        fresh=bool(returns)
        and not any(shared)
        and schema.name not in RENAMED
        and not schema.is_mutable,
        is_factory=overload in FACTORIES,
        is_constant=overload in CONSTANTS,
        is_read=overload in READS,
        is_sum=overload is aten.add.Tensor,
        may_leave=overload is aten._to_copy.default,
        is_followed=overload in FOLLOWED,
    )
