"""Text that is safe to show on a terminal and in a warning header.

anybody's text -> one bounded line
"""

from __future__ import annotations

import unicodedata


def plain(text: str, *, limit: int = 200) -> str:
    """Return *text* on one line, without control or format characters, at most *limit* long.

    Format characters include those that turn the direction of text around.
    """
    part = text[: 16 * limit]
    kept = part if part.isprintable() else "".join(_visible(character) for character in part)
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
