"""What an allocator took of the driver, and under which other capacities it would do the same.

    bytes taken, bytes refused -> the range of capacities it cannot tell apart

For allocators that compare their capacity with what they would hold, and read it nowhere else.
"""

from __future__ import annotations

BOUNDLESS = 1 << 62
"""More than any capacity."""


class Steady:
    """Counts what the driver gave and the least that it refused."""

    def __init__(self) -> None:
        self.reserved = 0
        """Bytes taken and not given back."""
        self.taken = 0
        """The most bytes it has held."""
        self.refused: int | None = None
        """The least bytes it would have held where the driver refused; None: it never did."""
        self.num_segments_opened = 0

    @property
    def alike(self) -> range:
        """The capacities under which it would have done the same, step by step.

        All it was given is within each of them, and all it was refused is not.
        """
        return range(self.taken, BOUNDLESS if self.refused is None else self.refused)

    def _note_growth(self, nbytes: int) -> None:
        self.reserved += nbytes
        self.taken = max(self.taken, self.reserved)
        self.num_segments_opened += 1

    def _note_refusal(self, nbytes: int) -> None:
        wanted = self.reserved + nbytes
        self.refused = wanted if self.refused is None else min(self.refused, wanted)
