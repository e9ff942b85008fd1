"""Keras configurations as data that other people wrote.

    a configuration -> the same, every class of it Keras' own | SpecError, UnsupportedJobError

Keras' own safe mode refuses pickled functions; this refuses them first, and everything else that
is not Keras', by name and place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.notes import UnknownCode

MAX_LAYERS = 10_000
MAX_UNITS = 1 << 32
"""Of any number in a configuration."""
EXECUTES = frozenset(
    {"Lambda", "TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer", "__lambda__"}
)
"""Classes that hold code, or load it from a file."""
LOOKUPS = frozenset({"IntegerLookup", "StringLookup", "TextVectorization"})
"""Layers whose vocabulary may be a path."""
CALLED = re.compile(r"(builtins|keras\.(src\.)?(activations|losses|metrics|ops)(\.[\w.]+)?)")
"""Modules whose functions a configuration may name: none of them reads a file."""


def check_config(config: Mapping[str, Any]) -> None:
    """Refuse what is not a configuration of Keras' own classes.

    Raises:
        SpecError: if it is no configuration of a model, or too large.
        UnsupportedJobError: if it holds code, or a class from elsewhere.
    """
    if not isinstance(config.get("class_name"), str) or not isinstance(
        config.get("config"), Mapping
    ):
        raise _wrong("model.config", "not a Keras configuration: it has class_name and config")
    stack: list[tuple[Any, str]] = [(config, "model.config")]
    num_classes = 0
    while stack:
        value, path = stack.pop()
        if isinstance(value, Mapping):
            num_classes += "class_name" in value
            if num_classes > MAX_LAYERS:
                raise _wrong("model.config", f"has more than {MAX_LAYERS} layers")
            _check_class(value, path)
            stack.extend((each, f"{path}.{key}") for key, each in value.items())
        elif isinstance(value, list | tuple):
            stack.extend((each, f"{path}[{index}]") for index, each in enumerate(value))
        elif isinstance(value, int) and abs(value) > MAX_UNITS:
            raise _wrong(path, f"{value} is not accepted: at most {MAX_UNITS}")


def _check_class(value: Mapping[str, Any], path: str) -> None:
    name, module = value.get("class_name"), value.get("module")
    if name in EXECUTES:
        raise _refused(f"{path}: '{name}' holds code of its own, which is not executed")
    if isinstance(module, str) and module.split(".")[0] not in ("keras", "builtins"):
        raise _refused(f"{path}: '{name}' is of the module '{module}', not Keras' own")
    if name == "function" and not (isinstance(module, str) and CALLED.fullmatch(module)):
        raise _refused(f"{path}: the function '{value.get('config')!s:.60}' is not called")
    given = value.get("config")
    if name in LOOKUPS and isinstance(given, Mapping) and isinstance(given.get("vocabulary"), str):
        raise _refused(f"{path}: the vocabulary of '{name}' is a file, and none is read")
    registered = value.get("registered_name")
    if name is not None and isinstance(registered, str) and ">" in registered:
        raise _refused(f"{path}: '{registered}' is a class of your own, not Keras'")


def _wrong(path: str, message: str) -> SpecError:
    return SpecError([Problem(path=path, message=message)])


def _refused(message: str) -> UnsupportedJobError:
    return UnsupportedJobError(message, code=UnknownCode.MODEL_CONFIG, path="model.config")
