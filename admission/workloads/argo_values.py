"""Argo's `{{…}}`: parameters put into texts, conditions and lists of items.

text, scope -> text; what the scope lacks stays as it is
Source: argoproj/argo-workflows f016ad89, `util/template/simple_template.go`,
`workflow/controller/{steps,dag}.go`. Not modelled: expressions (`{{=…}}`), outputs of steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from admission.values import Json
from admission.workloads.fields import mapping, sequence

MAX_TEXT = 64 << 10
"""Characters of one text once it is filled in; a longer one is left unresolved."""
MAX_ITEMS = 16
"""Items that one step is repeated for and that are read apart."""
MAX_DEPTH = 64

Scope = Mapping[str, str]
"""`inputs.parameters.x`, `workflow.parameters.x` -> its value."""

_REFERENCE = re.compile(r"\{\{\s*([\w.\[\]'-]+)\s*\}\}")
_BRACES = re.compile(r"\{\{([^{}]*)\}\}")
_APART = re.compile(r"[\s'\"]")
_COMPARISON = re.compile(r"([^=!<>()]*)(==|!=)([^=!<>()]*)")
UNKNOWN = "{{expression}}"
"""Stands for an expression, whose quotes and spaces would fall apart in a shell."""


def filled(value: Any, scope: Scope, *, depth: int = 0) -> Any:
    """Return *value* with the parameters of *scope* put into every text in it."""
    if isinstance(value, str):
        return _filled_text(value, scope)
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        return {
            _filled_text(key, scope) if isinstance(key, str) else key: filled(
                item, scope, depth=depth + 1
            )
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [filled(item, scope, depth=depth + 1) for item in value]
    return value


def size_of(value: object) -> int:
    """Return about how many bytes *value* is written with."""
    return len(_json(value))


def text_of(value: object) -> str | None:
    """Return a parameter's value as Argo writes it into a text; None if there is none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else _json(value)


def is_never(condition: object) -> bool:
    """Return whether *condition* (`when:`), filled in, is surely false."""
    if not isinstance(condition, str) or not condition.strip():
        return False
    return all(
        any(_is_false(part) for part in alternative.split("&&"))
        for alternative in condition.split("||")
    )


def items_of(step: Json, path: str) -> Iterator[Scope]:
    """Yield what `{{item}}` is in each repetition of *step*; one empty scope if it has none.

    A list that is only known at run time is one repetition with its items open.
    """
    found = step.get("withItems")
    if found is None and isinstance(step.get("withParam"), str):
        found = _list(step["withParam"])
    if isinstance(found, list | tuple):
        for item in found[:MAX_ITEMS]:
            yield _item(item)
        return
    count = text_of(mapping(step.get("withSequence"), f"{path}.withSequence").get("count"))
    if count is not None and count.isdigit() and len(count) < len(str(MAX_TEXT)):
        for index in range(min(int(count), MAX_ITEMS)):
            yield {"item": str(index)}
        return
    yield {}


def parameters(value: object, path: str) -> Iterator[tuple[str, Json]]:
    """Yield the name and the body of each of `arguments.parameters` or `inputs.parameters`."""
    fields = mapping(value, path)
    for index, item in enumerate(sequence(fields.get("parameters"), f"{path}.parameters")):
        body = mapping(item, f"{path}.parameters[{index}]")
        name = body.get("name")
        if isinstance(name, str):
            yield name, body


def _filled_text(value: str, scope: Scope) -> str:
    if "{{" not in value:
        return value
    if len(value) > MAX_TEXT:
        return value[:MAX_TEXT]
    left = MAX_TEXT

    def put(match: re.Match[str]) -> str:
        nonlocal left
        found = scope.get(match.group(1), match.group(0))
        left -= len(found)
        return found if left >= 0 else ""

    found = _REFERENCE.sub(put, value)
    if left < 0 or len(found) > MAX_TEXT:
        return value
    return _BRACES.sub(_without_expression, found)


def _without_expression(match: re.Match[str]) -> str:
    return UNKNOWN if _APART.search(match.group(1)) else match.group(0)


def _is_false(comparison: str) -> bool:
    if "{{" in comparison:
        return False
    if comparison.strip().strip("'\"").lower() == "false":
        return True
    match = _COMPARISON.fullmatch(comparison)
    if match is None:
        return False
    left, sign, right = (part.strip().strip("'\"") for part in match.groups())
    return (left == right) != (sign == "==")


def _item(item: object) -> Scope:
    if isinstance(item, Mapping):
        fields = {f"item.{key}": text_of(value) or "" for key, value in item.items()}
        return {"item": _json(item), **fields}
    return {"item": text_of(item) or ""}


def _list(value: str) -> list[Any] | None:
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, list) else None


def _json(value: object) -> str:
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        return str(value)[:MAX_TEXT]
