"""The clusters that nodes come and go between, and which of them a review may have seen.

name -> nodes; changes begun and taken in -> the states of a review's lifetime
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.builders import gpu_labels, node

T4, A10 = gpu_labels(), gpu_labels(product="NVIDIA-A10", memory="23028", compute=(8, 6))
A100 = gpu_labels(product="NVIDIA-A100-SXM4-40GB", memory="40960", compute=(8, 0))
LARGE_A100 = gpu_labels(product="NVIDIA-A100-SXM4-80GB", memory="81920", compute=(8, 0))
L4 = gpu_labels(product="NVIDIA-L4", memory="23034", compute=(8, 9))

Nodes = Mapping[str, dict[str, Any]]


def _nodes(**labels: Mapping[str, str]) -> Nodes:
    return {
        name.replace("_", "-"): node(name.replace("_", "-"), labels=of)
        for name, of in labels.items()
    }


BASE = "base"
STATES: Mapping[str, Nodes] = {
    BASE: _nodes(t4_0=T4, t4_1=T4, a10_0=A10, a100_0=A100),
    "added": _nodes(t4_0=T4, t4_1=T4, a10_0=A10, a100_0=A100, l4_0=L4),
    "removed": _nodes(t4_0=T4, t4_1=T4, a100_0=A100),
    "changed": _nodes(t4_0=T4, t4_1=T4, a10_0=A10, a100_0=LARGE_A100),
}


class Timeline:
    """Which states may be in force. From a change until the server shows it, both may."""

    def __init__(self) -> None:
        self._history: list[tuple[str, ...]] = [(BASE,)]

    @property
    def mark(self) -> int:
        """Return this moment, to ask about later."""
        return len(self._history) - 1

    @property
    def now(self) -> tuple[str, ...]:
        """Return the states that may be in force."""
        return self._history[-1]

    def begin(self, state: str) -> None:
        """Note that the nodes become those of *state*."""
        self._history.append((*self.now, state))

    def settle(self, state: str) -> None:
        """Note that the server shows *state*."""
        self._history.append((state,))

    def since(self, mark: int) -> tuple[str, ...]:
        """Return every state that may have been in force since *mark*."""
        if mark == self.mark:
            return self.now
        return tuple(dict.fromkeys(name for states in self._history[mark:] for name in states))
