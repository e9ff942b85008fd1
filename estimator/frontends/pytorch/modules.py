"""Which module an operator belongs to, in the forward pass and in backward.

    module calls, autograd nodes -> module path

Autograd numbers its nodes in the order they are made. The log remembers at which number each
module began, so that a backward node leads back to the module whose forward made it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import torch

_sequence_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
_current_node: Callable[[], Any] = torch._C._current_autograd_node
NO_NUMBER = 1 << 62
"""Nodes that accumulate gradients have no place in the order: their number is above this."""


class ModuleLog:
    """The module that runs now, and those that ran at each autograd number of this step."""

    def __init__(self) -> None:
        self.current = ""
        self._last = ""
        self._starts: list[int] = []
        self._modules: list[str] = []

    def clear(self) -> None:
        """Forget the last step."""
        self._starts.clear()
        self._modules.clear()

    def leave(self) -> None:
        """Be in no module."""
        self.current = self._last = ""

    def visit(self, module: str) -> str:
        """Enter *module*, and return the one that was entered before."""
        before, self.current = self.current, module
        number = _sequence_number()
        if self._starts and self._starts[-1] == number:
            self._modules[-1] = module
        else:
            self._starts.append(number)
            self._modules.append(module)
        return before

    def of_backward(self) -> str:
        """Return the module whose forward made the running backward node."""
        node = _current_node()
        if node is not None:
            number = node._sequence_nr()
            index = bisect_right(self._starts, number) - 1
            if index >= 0 and number < NO_NUMBER:
                self._last = self._modules[index]
        return self._last
