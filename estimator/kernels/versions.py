"""The version of a framework, as numbers.

version text -> (major, minor)
"""

from __future__ import annotations

import re

NEWEST = (9, 99)
"""For a text that cannot be read: the newest rules hold."""


def version_of(text: str) -> tuple[int, int]:
    """Return major and minor of *text*, such as `2.4.1+cu121`."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else NEWEST
