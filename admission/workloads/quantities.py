"""Amounts as Kubernetes writes them.

    object -> a whole number

Source: kubernetes v1.36.3 `staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go`.
"""

from __future__ import annotations

import re
from decimal import Decimal, DecimalException

MOST = 1 << 50
"""A pebibyte: more is no memory of a card."""

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{letter: Decimal(1000 ** (power + 1)) for power, letter in enumerate("kMGTPE")},
    **{f"{letter}i": Decimal(1024 ** (power + 1)) for power, letter in enumerate("KMGTPE")},
}
_QUANTITY = re.compile(
    r"(\+?\d{1,20}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,2})?)([A-Za-z]{0,2})", re.ASCII
)


def whole_quantity(value: object) -> int | None:
    """Return *value* as a whole number from 0 to 2^50; None if it is none, or absent."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, int):
        return value if 0 <= value <= MOST else None
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None or match[2] not in _SUFFIXES:
        return None
    try:
        amount = Decimal(match[1]) * _SUFFIXES[match[2]]
        is_whole = 0 <= amount <= MOST and amount == int(amount)
    except (DecimalException, OverflowError, ValueError):
        return None
    return int(amount) if is_whole else None
