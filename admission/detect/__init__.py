"""What a unit will train, read from its container and the owner's annotation.

Unit, Workload, documents -> Reading
"""

from __future__ import annotations

from admission.detect.reading import load_parts, read_unit

__all__ = ["load_parts", "read_unit"]
