"""A caching allocator written the slow and obvious way, to compare the fast one with.

Segments are lists of pieces, every search looks at every piece. One stream class a pool,
default settings, an optional capacity.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from estimator.units import MIB


@dataclass
class Piece:
    """A stretch of a segment; `tensor` is None while it is free."""

    size: int
    tensor: int | None = None


@dataclass
class Segment:
    """What one call to the driver returned."""

    stream: int
    is_small: bool
    pieces: list[Piece] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Return the bytes of the segment."""
        return sum(piece.size for piece in self.pieces)


class SlowAllocator:
    """The rules, one sentence a line."""

    def __init__(self, *, capacity: int | None = None) -> None:
        self.segments: list[Segment] = []
        self.capacity = capacity

    @property
    def reserved(self) -> int:
        """Return the sum of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def allocated(self) -> int:
        """Return the sum of all pieces with a tensor."""
        return sum(p.size for s in self.segments for p in s.pieces if p.tensor is not None)

    def allocate(self, tensor: int, nbytes: int, stream: int = 0) -> bool:
        """Give *tensor* the smallest free piece, the oldest and lowest of equal ones."""
        size = max(512, (nbytes + 511) // 512 * 512)
        is_small = size <= 1 * MIB
        best: tuple[int, int, int] | None = None
        for number, segment in enumerate(self.segments):
            if segment.stream != stream or segment.is_small != is_small:
                continue
            for place, piece in enumerate(segment.pieces):
                if piece.tensor is None and piece.size >= size:
                    found = (piece.size, number, place)
                    best = found if best is None or found < best else best
        if best is None:
            if not self._open(stream, is_small, size):
                return False
            best = (0, len(self.segments) - 1, 0)
        _, number, place = best
        pieces = self.segments[number].pieces
        rest = pieces[place].size - size
        if rest >= 512 if is_small else rest > 1 * MIB:
            pieces[place : place + 1] = [Piece(size), Piece(rest)]
        pieces[place].tensor = tensor
        return True

    def _open(self, stream: int, is_small: bool, size: int) -> bool:
        if is_small:
            nbytes = 2 * MIB
        elif size < 10 * MIB:
            nbytes = 20 * MIB
        else:
            nbytes = (size + 2 * MIB - 1) // (2 * MIB) * (2 * MIB)
        if self.capacity is not None and self.reserved + nbytes > self.capacity:
            self.empty_cache()
            if self.reserved + nbytes > self.capacity:
                return False
        self.segments.append(Segment(stream, is_small, [Piece(nbytes)]))
        return True

    def free(self, tensor: int) -> None:
        """Free the piece of *tensor* and join free neighbours."""
        for segment in self.segments:
            for piece in segment.pieces:
                if piece.tensor == tensor:
                    piece.tensor = None
            joined: list[Piece] = []
            for piece in segment.pieces:
                if joined and joined[-1].tensor is None and piece.tensor is None:
                    joined[-1].size += piece.size
                else:
                    joined.append(piece)
            segment.pieces = joined

    def empty_cache(self) -> None:
        """Drop every segment with nothing in it."""
        self.segments = [
            segment
            for segment in self.segments
            if any(piece.tensor is not None for piece in segment.pieces)
        ]
