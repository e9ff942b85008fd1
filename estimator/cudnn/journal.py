"""Which question cuDNN is thinking about, where its supervisor can read it after a crash.

    key -> shared memory -> key

A few bytes of memory shared by two processes: writing costs no system call, and what was written
outlives the writer.
"""

from __future__ import annotations

import mmap
import os
import struct

SIZE = 4096
_LENGTH = struct.Struct("=I")


class Journal:
    """One key, or none. Written by the cuDNN process, read by its supervisor."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, SIZE)

    def write(self, key: bytes) -> None:
        """Say that *key* is asked now; one that is too long is not said."""
        if _LENGTH.size + len(key) <= SIZE:
            self._memory[_LENGTH.size : _LENGTH.size + len(key)] = key
            self._memory[: _LENGTH.size] = _LENGTH.pack(len(key))

    def clear(self) -> None:
        """Say that nothing is asked."""
        self._memory[: _LENGTH.size] = _LENGTH.pack(0)

    def read(self) -> bytes | None:
        """Return what is asked, None if nothing is."""
        (length,) = _LENGTH.unpack(self._memory[: _LENGTH.size])
        if not 0 < length <= SIZE - _LENGTH.size:
            return None
        return bytes(self._memory[_LENGTH.size : _LENGTH.size + length])

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()


def new_memory() -> int:
    """Return a descriptor of memory for a journal."""
    descriptor = os.memfd_create("cudnn-journal")
    os.truncate(descriptor, SIZE)
    return descriptor
