"""Write a trace anew, event by event, with other sizes and tensors between.

Trace -> Rewriter -> Trace
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from estimator.trace import EventKind, Role, Trace


@dataclass(slots=True)
class Rewriter:
    """The columns of a new trace. Tensors of the old one keep their ids."""

    trace: Trace
    sizes: array[int] = field(init=False)
    roles: bytearray = field(init=False)
    streams: bytearray = field(init=False)
    kinds: bytearray = field(default_factory=bytearray)
    ids: array[int] = field(default_factory=lambda: array("q"))
    places: array[int] = field(default_factory=lambda: array("q"))

    def __post_init__(self) -> None:
        self.sizes = array("q", self.trace.sizes)
        self.roles = bytearray(self.trace.roles)
        self.streams = bytearray(self.trace.streams)

    def keep(self, event: int) -> None:
        """Append an event of the old trace as it is."""
        self.append(self.trace.kinds[event], self.trace.ids[event], self.trace.places[event])

    def append(self, kind: int, identifier: int, place: int) -> None:
        """Append an event."""
        self.kinds.append(kind)
        self.ids.append(identifier)
        self.places.append(place)

    def alloc(self, nbytes: int, role: Role, place: int, *, stream: int = 0) -> int:
        """Append the allocation of a tensor that the old trace does not have; return its id."""
        tensor = len(self.sizes)
        self.sizes.append(nbytes)
        self.roles.append(role)
        self.streams.append(stream)
        self.append(EventKind.ALLOC, tensor, place)
        return tensor

    def free(self, tensor: int, place: int) -> None:
        """Append the end of a tensor."""
        self.append(EventKind.FREE, tensor, place)

    def result(self, **changes: object) -> Trace:
        """Return the new trace."""
        columns = {
            "sizes": self.sizes,
            "roles": bytes(self.roles),
            "streams": bytes(self.streams),
            "kinds": bytes(self.kinds),
            "ids": self.ids,
            "places": self.places,
        }
        return replace(self.trace, **columns, **changes)  # type: ignore[arg-type]


def resized(trace: Trace, size_of: Callable[[int], int]) -> Trace:
    """Return *trace* with the bytes of tensor *i* as `size_of(i)`."""
    sizes = array("q", (size_of(tensor) for tensor in range(len(trace.sizes))))
    return replace(trace, sizes=sizes)
