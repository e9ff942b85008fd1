"""A trace lowered for one card: plain allocations, nothing left to ask a library.

    kernels: Trace, Device -> Program -> replay

A program is columns like a trace. Scratch tensors may carry *choices*: the sizes a library
would take in its order of preference when it cannot have the first.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from estimator.notes import Assumption, Unknown
from estimator.trace import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Allocations in order. Event kinds are ALLOC, FREE, USE and EMPTY_CACHE."""

    sizes: array[int]
    roles: bytes
    streams: bytes
    kinds: bytes
    ids: array[int]
    places: array[int]
    place_table: tuple[Place, ...]
    choices: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Scratch tensor id -> sizes to try after `sizes[id]` fails, in order; the last may be 0."""
    is_certain: bool = True
    """Whether no scratch tensor could have another size: every end of the range is this program."""
    assumptions: tuple[Assumption, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
