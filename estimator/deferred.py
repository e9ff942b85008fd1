"""Modules that are imported once they are needed, so that a command starts without them.

    name of a module -> something with its names

For what is costly to import and rarely needed: built schemas, terminals, logs. Written beside the
import that types and contracts are checked by:

    if TYPE_CHECKING:
        from estimator import tracefile
    else:
        tracefile = Deferred("estimator.tracefile")

In a table of functions, `later(lambda: tracefile.restated)` imports when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Deferred:
    """Stands for a module; the first name asked of it imports it."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Return what the module has under *name*."""
        return getattr(import_module(self._name), name)


def later(named: Callable[[], Callable[P, R]]) -> Callable[P, R]:
    """Return the function that *named* names, looked up at each call."""

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return named()(*args, **kwargs)

    return call


def load(*modules: Any) -> None:
    """Import what `Deferred` *modules* stand for: before it is needed in a hurry."""
    for module in modules:
        if isinstance(module, Deferred):
            import_module(module._name)
