"""Byte sizes and how people read them.

    int -> int, int -> text

Sizes inside the product are whole bytes; GiB (2^30) appears only in text.
"""

from __future__ import annotations

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


def round_up(nbytes: int, step: int) -> int:
    """Return the smallest multiple of *step* that is not below *nbytes*."""
    return -(-nbytes // step) * step


def gib_up(nbytes: int) -> str:
    """Return a need as text in GiB with one decimal, rounded up."""
    return f"{-(-nbytes * 10 // GIB) / 10:.1f} GiB"


def gib_down(nbytes: int) -> str:
    """Return a capacity as text in GiB with one decimal, rounded down."""
    return f"{nbytes * 10 // GIB / 10:.1f} GiB"
