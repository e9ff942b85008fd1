"""Every target, by name.

Modules are imported when the table is asked for: a child does that with instrumentation.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from tests.fuzz.target import Target

MODULES = (
    "tests.fuzz.cluster_reviews",
    "tests.fuzz.cluster_objects",
    "tests.fuzz.cluster_manifests",
    "tests.fuzz.cluster_commands",
    "tests.fuzz.cluster_notes",
    "tests.fuzz.cluster_agent",
    "tests.fuzz.files_specs",
    "tests.fuzz.files_models",
    "tests.fuzz.files_traces",
    "tests.fuzz.files_configs",
    "tests.fuzz.files_urls",
)
"""Modules with a tuple `TARGETS`."""


def module_of(name: str) -> str:
    """Return the module of the target *name*: a child imports no other."""
    return next(each for each in MODULES if name in targets((each,)))


def targets(modules: Sequence[str] = MODULES) -> dict[str, Target]:
    """Return the targets of all *modules*, in their order.

    Raises: ValueError where two have the same name.
    """
    found: dict[str, Target] = {}
    for name in modules:
        module = importlib.import_module(name)
        for target in module.TARGETS:
            if target.name in found:
                raise ValueError(f"two targets are called {target.name}")
            found[target.name] = target
    return found
