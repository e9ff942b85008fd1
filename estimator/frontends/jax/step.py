"""One step as a pure function of what is on the card.

    a function, arguments as shapes, the role of each -> Step

No array is made: arguments are shapes and dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from estimator.trace import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One array the step is called with."""

    shape: tuple[int, ...]
    dtype: str
    role: Role
    is_batch: bool = False
    """Whether it is part of a batch: its first axis counts examples."""

    def struct(self, sharding: Any = None) -> jax.ShapeDtypeStruct:
        """Return it as JAX sees it."""
        return jax.ShapeDtypeStruct(self.shape, self.dtype, sharding=sharding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a job runs again and again."""

    function: Callable[..., Any]
    """Of a state and a batch, both trees of arrays."""
    state: Any
    """A tree of `Argument`."""
    batch: Any
    """A tree of `Argument`."""
    is_donated: bool
    """Whether the state is handed over, so that the new one is written over it."""
    parameters: int
    """Elements of all weights."""
    recurrent: str = ""
    """Names of layers that a card runs through cuDNN instead of the loop they are here."""
