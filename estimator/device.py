"""One card, or one slice of a card, as the estimator sees it.

    catalog or node labels -> Device

Capacities are bytes. `total` is what NVML reports, `usable` what one process can get,
`budget` what this pod may use (a slice, a share, or the whole usable memory).
"""

from __future__ import annotations

from dataclasses import dataclass

ComputeCapability = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A card. A generic one (no `--gpu`) has no capacity, so no verdict."""

    name: str
    total_bytes: int | None
    reservation_bytes: int
    budget_bytes: int | None
    compute_capability: ComputeCapability
    driver: str | None = None
    multiprocessors: int | None = None
    catalog_name: str | None = None
    """The catalog entry this card was recognised as, if any."""

    @property
    def usable_bytes(self) -> int | None:
        """Return total minus the driver's own reservation, if the capacity is known."""
        return None if self.total_bytes is None else self.total_bytes - self.reservation_bytes
