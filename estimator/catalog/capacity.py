"""A card given by its figures: `memory=23028MiB,compute=8.6,driver=550.54`.

    text -> Capacity

GB is refused: makers mean 10^9 by it and people 2^30, and the two are 7.4 % apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from estimator.device import ComputeCapability
from estimator.errors import Problem, SpecError
from estimator.units import GIB, KIB, MIB

_T = TypeVar("_T")
_UNITS = {"b": 1, "kib": KIB, "mib": MIB, "gib": GIB}
_DECIMAL_UNITS = frozenset({"kb", "mb", "gb", "tb"})
_AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z]*)", re.ASCII)
_COMPUTE = re.compile(r"(\d{1,2})\.(\d)", re.ASCII)
_DRIVER = re.compile(r"\d{1,4}(\.\d{1,4}){0,2}", re.ASCII)
_LEAST, _MOST = GIB, 4096 * GIB
_FORM = "memory=23028MiB,compute=8.6, and driver=550.54 if known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a user says of a card: the NVML total, the compute capability, the driver."""

    total_bytes: int
    compute_capability: ComputeCapability
    driver: str | None = None


def read_capacity(text: str, *, path: str) -> Capacity:
    """Return the card *text* describes.

    Raises:
        SpecError: naming every mistake in the text.
    """
    problems: list[str] = []
    values = _values(text, problems)
    total = _read(values, "memory", _memory, problems)
    compute = _read(values, "compute", _compute, problems)
    driver = _read(values, "driver", _driver, problems) if "driver" in values else None
    if problems or total is None or compute is None:
        raise SpecError(
            [Problem(path=path, message=message) for message in problems],
            hint=f"write {_FORM}; memory is the total nvidia-smi shows",
        )
    return Capacity(total_bytes=total, compute_capability=compute, driver=driver)


def _values(text: str, problems: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        key = key.strip().casefold()
        if key not in ("memory", "compute", "driver"):
            problems.append(f"{quoted(part.strip())} is not known, accepted are {_FORM}")
        elif key in values:
            problems.append(f"{key} is given twice")
        else:
            values[key] = value.strip()
    return values


def _read(
    values: dict[str, str], key: str, parse: Callable[[str], _T], problems: list[str]
) -> _T | None:
    if key not in values:
        problems.append(f"{key} is missing")
        return None
    try:
        return parse(values[key])
    except ValueError as error:
        problems.append(f"{key}: {error}")
        return None


def _memory(text: str) -> int:
    match = _AMOUNT.fullmatch(text)
    unit = match[2].casefold() if match else ""
    if unit in _DECIMAL_UNITS:
        raise ValueError(
            f"{quoted(text)}: {match[2] if match else ''} means 10^9 to some and 2^30 to others, "
            "accepted are B, KiB, MiB, GiB"
        )
    if match is None or unit not in _UNITS:
        raise ValueError(
            f"{quoted(text)} is not a size, accepted is a number with B, KiB, MiB or GiB"
        )
    nbytes = int(Decimal(match[1]) * _UNITS[unit])
    if not _LEAST <= nbytes <= _MOST:
        raise ValueError(f"{quoted(text)} is out of range, accepted is 1 GiB to 4096 GiB")
    return nbytes


def _compute(text: str) -> ComputeCapability:
    match = _COMPUTE.fullmatch(text)
    if match is None or int(match[1]) < 3:
        raise ValueError(f"{quoted(text)} is not a compute capability, accepted is 3.0 and up")
    return int(match[1]), int(match[2])


def _driver(text: str) -> str:
    if _DRIVER.fullmatch(text) is None:
        raise ValueError(f"{quoted(text)} is not a driver version, accepted is a form like 550.54")
    return text


def quoted(text: str) -> str:
    """Return *text* as messages show it: printable and short."""
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
