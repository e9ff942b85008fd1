"""What XLA tells of a compile on standard output.

pieces of text -> Account
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

_BEGIN = re.compile(rb"\*\*\* Begin (\S+) \*\*\*\n")
_ERROR = b"*** Error ***\n"
_MODULE = b"_gpu_after_optimizations.txt"
_ASSIGNMENT = b"_gpu_after_optimizations-buffer-assignment.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What was said until the buffers were assigned, or until nothing more came."""

    module: str = ""
    """The program as it would run."""
    assignment: str | None = None
    error: str = ""
    is_late: bool = False
    status: int = 0
    cpu_seconds: float = 0.0
    resident_bytes: int = 0

    def ended(self, status: int, *, cpu_seconds: float, resident_bytes: int) -> Account:
        """Return this with how the process ended, and what it took of the machine."""
        return replace(self, status=status, cpu_seconds=cpu_seconds, resident_bytes=resident_bytes)


def read_dump(pieces: Iterable[bytes | None]) -> Account:
    """Return the account in *pieces*, read no further than needed; None means it is too late."""
    said = bytearray()
    for piece in pieces:
        if piece is None:
            return Account(is_late=True)
        said += piece
        # A section is whole once the next begins or its end is marked.
        assignment = _section(said, _ASSIGNMENT)
        if assignment is not None:
            module = _section(said, _MODULE)
            return Account(module=module or "", assignment=assignment)
        del said[: _discardable(said)]
    _, found, error = bytes(said).partition(_ERROR)
    return Account(error=error.decode(errors="replace").strip() if found else "")


def _section(said: bytearray, suffix: bytes) -> str | None:
    """Return the whole section whose name ends in *suffix*, None if it is not there."""
    for found in _BEGIN.finditer(said):
        if found[1].endswith(suffix):
            end = said.find(b"*** End " + found[1], found.end())
            return None if end < 0 else said[found.end() : end].decode(errors="replace")
    return None


def _discardable(said: bytearray) -> int:
    """Return how much of *said* is sections that nobody wants, whole and at the start."""
    for found in _BEGIN.finditer(said):
        if found[1].endswith((_MODULE, _ASSIGNMENT)):
            return 0
        end = said.find(b"*** End " + found[1], found.end())
        return 0 if end < 0 else end
    return 0
