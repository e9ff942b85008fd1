"""What a unit will train, read from its container and the owner's annotation.

Unit, Workload, documents -> Reading
"""

from __future__ import annotations

from admission.detect.reading import read_unit

__all__ = ["read_unit"]
