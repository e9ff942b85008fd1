"""How much memory this process holds.

/proc -> bytes
"""

from __future__ import annotations

import resource
from pathlib import Path


def resident_bytes() -> int:
    """Return how much memory this process holds (proc(5), statm)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
