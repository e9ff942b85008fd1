"""Which version's rules a trace follows.

frameworkVersion -> (major, minor)
"""

from __future__ import annotations

import re

Version = tuple[int, int]


def parse_version(text: str) -> Version | None:
    """Return major and minor of *text* (`2.4.1+cu121` -> (2, 4)), or None if it has none."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None
