"""The version of what is kept in the ConfigMap, which other releases of ours read and write too.

text -> ours, or a later release's
"""

from __future__ import annotations

import orjson

VERSION = 1
"""Written into each key. A release that writes otherwise counts it up."""


def is_later(text: str) -> bool:
    """Return whether a later release wrote *text*: not to be read as ours, nor written over.

    It comes back when an upgrade that was rolled back is tried again. Text that makes no sense is
    nobody's.
    """
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    version = document.get("version") if isinstance(document, dict) else None
    return type(version) is int and version > VERSION
