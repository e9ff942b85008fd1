"""What every duty may ask.

settings, store, judges, inventory -> Parts
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from admission.controller.exposition import Exposition
from admission.controller.judging import Judges
from admission.controller.store import Store
from admission.controller_settings import ControllerSettings
from admission.inventory import Inventory


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The controller's own, without what writes."""

    settings: ControllerSettings
    store: Store
    judges: Judges
    inventory: Inventory
    exposition: Exposition
    namespace: str
    """Where the controller runs: of its Lease and of what it keeps."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
