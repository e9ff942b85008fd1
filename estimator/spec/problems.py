"""pydantic's findings as problems people can read.

ValidationError -> (path, value seen, what is accepted)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from estimator.errors import Problem

_MAX_SHOWN = 60


def problems_of(error: ValidationError) -> tuple[Problem, ...]:
    """Return every problem of *error* with its path, in document order."""
    return tuple(_problem(item) for item in error.errors(include_url=False, include_context=True))


def path_text(parts: Iterable[str | int]) -> str:
    """Return `a.b[0].c` for the parts of a path; a key that nobody reads is shown as a value is."""
    text = ""
    for part in parts:
        name = f"[{part}]" if isinstance(part, int) else _key(part)
        text += f".{name}" if text and isinstance(part, str) else name
    return text


def _key(part: str) -> str:
    """Return *part* if it is a short line of characters that are seen, else as `_seen` has it."""
    return part if part.isprintable() and len(part) <= _MAX_SHOWN else _seen(part)


def _problem(item: Any) -> Problem:
    path = path_text(part for part in item["loc"] if not str(part).startswith("function-"))
    seen = _seen(item["input"])
    context = item.get("ctx", {})
    match item["type"]:
        case "missing":
            return Problem(path=path, message="missing; it is required")
        case "extra_forbidden":
            key = str(item["loc"][-1])
            is_shown = "_" in key and key == _key(key)
            meant = f"; did you mean '{to_camel(key)}'?" if is_shown else ""
            return Problem(path=path, message=f"unknown key (value {seen}){meant}")
        case "model_type" | "dict_type":
            return Problem(path=path, message=f"{seen} is not a mapping of keys to values")
        case "enum" | "literal_error":
            return Problem(path=path, message=f"{seen} is not one of {context['expected']}")
        case "value_error":
            text = str(context["error"])
            head, _, rest = text.partition(": ")
            return Problem(path=head, message=rest) if rest else Problem(path=path, message=text)
        case _:
            accepted = str(item["msg"])
            accepted = accepted[:1].lower() + accepted[1:]
            return Problem(path=path, message=f"{seen} is not accepted: {accepted}")


def _seen(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
