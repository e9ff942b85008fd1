"""What a library call takes besides its inputs and outputs.

    Kernel, Device -> Scratch | Unknown

Scratch is sizes only: when it is allocated and freed is `lowering.py`'s affair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from estimator.device import Device
from estimator.notes import Assumption, Unknown
from estimator.trace import Kernel, TensorFacts

ELEMENT_BYTES = {
    "float64": 8,
    "int64": 8,
    "complex64": 8,
    "complex128": 16,
    "float32": 4,
    "int32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
}
"""Bytes an element by dtype name; every other dtype (bool, int8, float8) has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One scratch allocation of a call."""

    nbytes: int
    """What the call takes if it can."""
    choices: tuple[int, ...] = ()
    """What it takes instead if it cannot, in order; ends with 0 if it can do without."""
    least: int | None = None
    """Low end where *nbytes* is not certain; None: it is a rule."""
    most: int | None = None
    """High end where *nbytes* is not certain; None: *nbytes* itself."""

    @property
    def is_certain(self) -> bool:
        """Return whether both ends of the range are *nbytes*."""
        return self.least in (None, self.nbytes) and self.most in (None, self.nbytes)


Group = tuple[Block, ...]
"""Blocks that are alive together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """All scratch of one call, between the call's outputs and its return."""

    groups: tuple[Group, ...] = ()
    """One group after another: each is freed before the next is allocated."""
    search: tuple[Group, ...] = ()
    """What the first call with these shapes takes before: a library that looks for its fastest
    way tries them all once."""
    assumption: Assumption | None = None

    @property
    def blocks(self) -> Group:
        """Return every block of a call that is not the first."""
        return tuple(block for group in self.groups for block in group)

    @property
    def is_certain(self) -> bool:
        """Return whether every block has one size."""
        groups = (*self.groups, *self.search)
        return all(block.is_certain for group in groups for block in group)


NONE = Scratch()
Rule = Callable[[Kernel, Device], Scratch | Unknown]


class WorkspaceSource(Protocol):
    """Knows the workspaces of a library whose choice of algorithm is not ours to derive."""

    def scratch(self, kernel: Kernel, device: Device) -> Scratch | Unknown:
        """Return the scratch of *kernel* on *device*, or why it is not known."""


def certain(*sizes: int) -> Scratch:
    """Return scratch that follows from a rule: one block a size, alive together, no zeros."""
    return together(*(Block(nbytes=size) for size in sizes if size > 0))


def bound(nbytes: int, assumption: Assumption) -> Scratch:
    """Return scratch of at most about *nbytes*, perhaps none."""
    return together(Block(nbytes=nbytes, least=0), assumption=assumption)


def together(*blocks: Block, assumption: Assumption | None = None) -> Scratch:
    """Return scratch of *blocks* that are alive together."""
    return Scratch(groups=(blocks,) if blocks else (), assumption=assumption)


def element_bytes(tensor: TensorFacts) -> int:
    """Return the bytes of one element."""
    return ELEMENT_BYTES.get(tensor.dtype, 1)


def num_elements(tensor: TensorFacts) -> int:
    """Return the number of elements."""
    count = 1
    for size in tensor.shape:
        count *= size
    return count


def tensor_bytes(tensor: TensorFacts) -> int:
    """Return the bytes of a dense tensor."""
    return num_elements(tensor) * element_bytes(tensor)


def attribute(kernel: Kernel, name: str) -> int | float | bool | str | tuple[int, ...] | None:
    """Return an attribute of *kernel*, None if it has none of that name."""
    return next((value for key, value in kernel.attributes if key == name), None)
