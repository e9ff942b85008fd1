"""A configuration file as flags: what a command line and a file say is read in the same way.

    text -> mapping -> Flags named `training.local_batch_size`

YAML, JSON and TOML, with limits; never executed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from admission.detect.files import File
from admission.detect.flags import NULL, Flag, Flags
from admission.detect.words import literal
from estimator.deferred import Deferred
from estimator.documents import read_documents
from estimator.errors import SpecError

if TYPE_CHECKING:
    import tomllib
else:
    tomllib = Deferred("tomllib")

MAX_TEXT = 256 << 10
MAX_KEYS = 5_000
MAX_DEPTH = 32
MAX_DOTS = 64
"""Of one line of TOML."""
_FIELDS = ("args", "command", "env")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A configuration, or why there is none."""

    document: Mapping[str, Any]
    source: str = ""
    problem: str = ""
    """Completes `FILE …`."""


def read_config(file: File) -> Config:
    """Return the mapping in *file*: TOML by its name, else YAML, of which JSON is a part."""
    if file.text is None:
        return Config(document={}, problem=file.problem)
    if len(file.text) > MAX_TEXT:
        return Config(document={}, problem=f"is longer than {MAX_TEXT} characters")
    try:
        if file.path.endswith(".toml"):
            document: object = _toml(file.text)
        else:
            document = _only(read_documents(file.text, path="", aliases=True))
    except (SpecError, ValueError, RecursionError) as error:
        reason = error.message if isinstance(error, SpecError) else str(error)
        return Config(document={}, problem=f"cannot be read: {reason:.200}")
    if not isinstance(document, Mapping):
        return Config(document={}, problem="is no mapping of keys to values")
    return Config(document=document, source=file.source)


def _toml(text: str) -> object:
    """Return the document in *text*.

    Raises:
        ValueError: if it is no TOML, or has a line no person writes: for a key of many parts
            `tomllib` keeps a copy of each beginning, 12 GiB for one of 120 KiB.
    """
    if any(line.count(".") > MAX_DOTS for line in text.splitlines()):
        raise ValueError(f"a line has more than {MAX_DOTS} dots")
    return tomllib.loads(text)


def _only(documents: Iterable[object]) -> object:
    """Return the one document that is not empty, or an empty mapping if there is none."""
    found = [document for document in documents if document is not None]
    return found[0] if len(found) == 1 else found or {}


def document_flags(document: Mapping[str, Any], *, told_by: str, path: str) -> Flags:
    """Return a flag for each value of *document*; *told_by* is how `sources` names the file.

    Nested keys are joined by dots, list items by their number; lists of plain values are one flag
    with several values. `null` is the text `null`.
    """
    holder, _, origin = path.rpartition(".")
    if origin not in _FIELDS:
        holder, origin = path, ""
    given = tuple(
        Flag(
            name=name.replace("-", "_"),
            spelling=name,
            values=tuple(literal(_text(item)) for item in values),
            where="",
            path=holder,
            origin=origin,
            told_by=told_by,
        )
        for name, values in _leaves(document)
    )
    return Flags(given=given)


def defaults_of(values: Mapping[str, Any], *, told_by: str) -> Mapping[str, Flag]:
    """Return *values* as the defaults of a program."""
    flags = document_flags(values, told_by=told_by, path="")
    return {flag.name: flag for flag in flags.given}


def _leaves(document: Mapping[str, Any]) -> Iterator[tuple[str, tuple[object, ...]]]:
    stack: list[tuple[str, object, int]] = [("", document, 0)]
    seen = 0
    while stack:
        name, value, depth = stack.pop()
        seen += 1
        if seen > MAX_KEYS or depth > MAX_DEPTH:
            return
        prefix = f"{name}." if name else ""
        if isinstance(value, Mapping):
            stack.extend(
                (f"{prefix}{key}", item, depth + 1) for key, item in reversed(tuple(value.items()))
            )
        elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
            stack.extend(
                (f"{prefix}{index}", item, depth + 1)
                for index, item in reversed(tuple(enumerate(value)))
            )
        else:
            yield name, tuple(value) if isinstance(value, list) else (value,)


def _text(value: object) -> str:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number too long to read"
    return str(value)
