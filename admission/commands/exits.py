"""How commands end, beside 0 for done and 1 for an answer that is no."""

from __future__ import annotations

USAGE = 2
"""Bad usage or input."""
FAULT = 3
"""Our own fault."""
