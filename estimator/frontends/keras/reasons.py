"""What Keras and its backends raise at a model, as one line that names the layer.

exception -> text

Not kept: where in Keras it was raised, the configuration Keras repeats, and control characters,
which a document can put into a message through the names of its layers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from traceback import walk_tb
from typing import Any

import keras

MOST_TEXT = 300
WRAPPED = ("could not be deserialized properly", "Error when deserializing class")
"""How Keras begins to tell that something failed within `from_config`; what did stands last.

Source: keras 3.15.1 src/saving/serialization_lib.py (`deserialize_keras_object`),
src/ops/operation.py (`from_config`).
"""
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
"""Sequences a terminal would obey (ECMA-48)."""


def reason_of(error: BaseException) -> str:
    """Return what *error* says, on one line of at most 300 characters.

    The layer it was raised in comes first, by name. A division by zero is told as what it is: a
    size, a stride or a number of groups that is zero.
    """
    first = _unwrapped(error)
    if isinstance(first, ZeroDivisionError):
        said = "one of its sizes, strides or groups is zero"
    else:
        said = one_line(str(first)) or type(first).__name__
    layer = _layer_of(first)
    text = said if not layer or layer in said else f"{layer}: {said}"
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1].rstrip() + "…"


def one_line(text: str) -> str:
    """Return *text* on one line, without what a terminal would obey or hide."""
    return " ".join("".join(map(_visible, _ESCAPE.sub("", text[: 64 * MOST_TEXT]))).split())


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Zl", "Zp", "Cc"):
        return " "
    return "" if category.startswith("C") else character


def _unwrapped(error: BaseException) -> BaseException:
    """Return what Keras wrapped, however often."""
    while error.__context__ is not None and any(words in str(error) for words in WRAPPED):
        error = error.__context__
    return error


def _layer_of(error: BaseException) -> str:
    """Return kind and name of the innermost layer *error* went through, empty if there is none."""
    found = ""
    for frame, _ in walk_tb(error.__traceback__):
        kind, name = _made_in(frame.f_locals)
        is_layer = isinstance(kind, type) and issubclass(kind, keras.layers.Layer)
        if is_layer and not issubclass(kind, keras.Model) and isinstance(name, str):
            found = f"{kind.__name__} '{one_line(name)[:60]}'"
    return found


def _made_in(names: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return class and name of what a method with these local *names* belongs to, or is making."""
    owner = names.get("self")
    if isinstance(owner, keras.layers.Layer):
        return type(owner), getattr(owner, "name", None)
    config = names.get("config")
    return names.get("cls"), config.get("name") if isinstance(config, dict) else None
