"""Whether `[ … ]` holds, where everything it asks is known.

    words -> True | False | not known

Files are not looked at, and patterns of `[[` are not matched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from admission.detect.words import Word

_ENDS = {"[": "]", "[[": "]]", "test": ""}
_NUMBER = re.compile(r"[+-]?\d{1,15}")
_GLOB = re.compile(r"[*?\[\\]")
_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}


def outcome_of(words: tuple[Word, ...]) -> bool | None:
    """Return whether the command *words* succeeds; None if that is not known."""
    name = words[0].text
    if name in ("true", ":"):
        return True
    if name == "false":
        return False
    if name not in _ENDS or not all(word.is_known for word in words):
        return None
    texts = [word.text for word in words[1:]]
    if _ENDS[name]:
        if not texts or texts[-1] != _ENDS[name]:
            return None
        texts.pop()
    is_negated = len(texts) > 1 and texts[0] == "!"
    found = _holds(texts[1:] if is_negated else texts, has_patterns=name == "[[")
    return found if found is None or not is_negated else not found


def _holds(texts: list[str], *, has_patterns: bool) -> bool | None:
    match texts:
        case ["-n", text] if not text.startswith("-"):
            return bool(text)
        case ["-z", text] if not text.startswith("-"):
            return not text
        case [left, "=" | "==" | "!=" as operator, right]:
            if has_patterns and _GLOB.search(right):
                return None
            return (left == right) == (operator != "!=")
        case [left, operator, right] if operator in _COMPARED:
            if not (_NUMBER.fullmatch(left) and _NUMBER.fullmatch(right)):
                return None
            return _COMPARED[operator](int(left), int(right))
    return None
