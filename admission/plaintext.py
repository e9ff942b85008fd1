"""Text that is safe to show on a terminal and in a warning header.

anybody's text -> one bounded line
"""

from __future__ import annotations

import re
import unicodedata

_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
"""Control sequences, control strings that end, and shorter escapes (ECMA-48, section 5)."""


def plain(text: str, *, limit: int = 200) -> str:
    """Return *text* on one line, without control or format characters, at most *limit* long.

    Escape sequences of terminals go whole, with the letters they are made of. Format characters
    include those that turn the direction of text around.
    """
    part = text[: 16 * limit]
    kept = part if part.isprintable() else "".join(map(_visible, _ESCAPE.sub("", part)))
    line = " ".join(kept.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Zl", "Zp", "Cc"):
        return " "
    return "" if category.startswith("C") else character


def stopped(text: str) -> str:
    """Return *text* with a full stop, unless it has one."""
    return text if text.endswith((".", "…")) else f"{text}."


def sentence(text: str) -> str:
    """Return *text* with a capital first letter and a full stop."""
    return stopped(f"{text[:1].upper()}{text[1:]}")
