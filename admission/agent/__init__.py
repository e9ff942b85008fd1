"""The agent of a GPU node. This file keeps it small: it is imported before all the others.

structlog imports rich wherever that is installed, for tracebacks in colour. No log of ours has
them, and rich is 79 modules and 3.7 MiB, of 60 that the whole agent may take.
"""

from __future__ import annotations

import sys
from typing import Any

_modules: dict[str, Any] = sys.modules
if "structlog" not in _modules and "rich" not in _modules:
    _modules["rich"] = None  # what is None cannot be imported
    try:
        import structlog  # noqa: F401 (imported here so that it is imported like this)
    finally:
        del _modules["rich"]
