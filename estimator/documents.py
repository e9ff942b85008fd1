"""Documents people write, read with limits.

    text -> JSON types

Custom tags build nothing. YAML aliases expand without end, so they are refused unless the
caller bounds what it walks. Never touches a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
import yaml

from estimator.errors import Problem, SpecError

MAX_BYTES = 8 << 20
MAX_DEPTH = 200
MAX_NUMBER = 1_000
"""Characters of a whole number. A longer one of base 60 (`1:1:1…`) takes the square of its length
to read, and one of base 16 has more digits than Python writes into a message."""

_BROKEN = (
    yaml.YAMLError,
    RecursionError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""What PyYAML's constructors raise at `!!int ""`, `!!bool x`, `1:1:1.5`, long numbers."""

_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _number(loader: Any, node: Any) -> object:
    if len(node.value) > MAX_NUMBER:
        raise yaml.YAMLError(f"a whole number is longer than {MAX_NUMBER} characters")
    return loader.construct_yaml_int(node)


class _Loader(_Safe):  # type: ignore[misc]  # PyYAML's stubs do not have the one of libyaml
    """PyYAML's own for plain data, with a limit on numbers."""

    yaml_constructors = {**_Safe.yaml_constructors, "tag:yaml.org,2002:int": _number}


_SCALARS: Mapping[str, Callable[[str], object]] = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
    "tag:yaml.org,2002:bool": {"true": True, "false": False}.__getitem__,
    "tag:yaml.org,2002:null": lambda _: None,
}
"""How our own files write them."""


def read_documents(text: str, *, path: str = "", aliases: bool = False) -> Iterator[object]:
    """Yield each document of YAML or JSON *text*.

    Raises:
        SpecError: if the text is too large or deep, holds an alias that is not accepted, or is
            neither YAML nor JSON.
    """
    if len(text) > MAX_BYTES:
        raise SpecError([Problem(path=path, message=f"longer than {MAX_BYTES} bytes")])
    if text.lstrip()[:1] in ("{", "["):
        try:
            yield orjson.loads(text)
            return
        except orjson.JSONDecodeError:
            pass  # flow-style YAML starts like JSON
    try:
        _check_events(text, aliases=aliases)
        yield from yaml.load_all(text, Loader=_Loader)
    except _BROKEN as error:
        message = f"not YAML or JSON: {_short(error)}"
        raise SpecError([Problem(path=path, message=message)]) from error


def read_document(text: str, *, path: str = "", aliases: bool = False) -> object:
    """Return the single document of *text* (see `read_documents`)."""
    documents = list(read_documents(text, path=path, aliases=aliases))
    if len(documents) != 1:
        message = f"{len(documents)} documents, one is accepted"
        raise SpecError([Problem(path=path, message=message)])
    return documents[0]


def read_own(text: str) -> Any:
    """Return the document of *text*, a file that we ship: nothing is checked, plain values only.

    Half the time of PyYAML's constructors, which are ready for tags, merges and aliases.
    """
    return _plain(yaml.compose(text, Loader=_Loader))


def _plain(node: Any) -> Any:
    match node.id:
        case "mapping":
            return {_plain(key): _plain(value) for key, value in node.value}
        case "sequence":
            return [_plain(item) for item in node.value]
        case _:
            return _SCALARS[node.tag](node.value)


def _check_events(text: str, *, aliases: bool) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent) and not aliases:
            raise yaml.YAMLError("aliases are not accepted")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise yaml.YAMLError(f"nested deeper than {MAX_DEPTH}")


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
