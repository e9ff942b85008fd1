"""A JSON text that no parser takes, read key by key.

    File -> Config, or None if no line says anything

For configurations that are broken by a missing or a surplus comma: whoever reads one so has to say
that the job will fail on it. Values on a line of their own only; nested ones are left out.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from admission.detect.configs import MAX_KEYS, MAX_TEXT, Config
from admission.detect.files import File

_PAIR = re.compile(r'^\s*"([A-Za-z_][\w.-]{0,99})"\s*:\s*(.{1,4096}?)\s*,?\s*$')


def tolerant_config(file: File) -> Config | None:
    """Return the plain values of *file*'s outermost mapping, each from a line of its own."""
    text = file.text or ""
    if len(text) > MAX_TEXT or not text.lstrip().startswith("{"):
        return None
    found: dict[str, Any] = {}
    depth = 0
    for line in text.splitlines()[:MAX_KEYS]:
        match = _PAIR.match(line) if depth == 1 else None
        if match is not None:
            _put(found, match.group(1), match.group(2))
        depth += line.count("{") + line.count("[") - line.count("}") - line.count("]")
    return Config(document=found, source=f"{file.source} (broken)") if found else None


def _put(found: dict[str, Any], key: str, text: str) -> None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    if not isinstance(value, dict):
        found[key] = value
