"""What of a serialised `jax.export` says how much memory its step takes.

    bytes -> ExportFile

The trees of arguments and results say how they are called, and are not read: a flatbuffer may refer
to one part from many places, so that a tree doubles with each of its levels. What is read is
counted. Nothing is built or run.

Source: jax 0.10.2 `jax/_src/export/serialization.py` (`_deserialize_exported`),
`jax/_src/export/serialization.fbs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jax._src.export.serialization_generated import Exported

MAX_ARGUMENTS = 100_000
"""Of a step, and as many results. One of Llama-3-405B with Adam has 3,500."""
MAX_SIZES = 400_000
"""In the shapes of all of them together."""
MAX_DIGITS = 19
"""Of a size: 64 bits. What is no number is left open by the export."""


class ExportLimitError(ValueError):
    """It has more of something than is read; the message says of what and how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFile:
    """The part of an export that is looked at."""

    module: bytes
    """StableHLO."""
    num_devices: int
    has_open_sizes: bool


def read_export(content: bytes) -> ExportFile:
    """Return what the export in *content* says.

    Raises:
        ExportLimitError: if it has more arguments or sizes than are read.
        Exception: whatever the reader of flatbuffers stumbles over, if it is no export.
    """
    found: Any = Exported.GetRootAs(content, 0)
    return ExportFile(
        module=found.MlirModuleSerializedAsNumpy().tobytes(),
        num_devices=int(found.NrDevices() or found.NrDevicesShort()),
        has_open_sizes=not all(map(_is_number, _sizes(found))),
    )


def _sizes(found: Any) -> Iterator[bytes]:
    """Yield the sizes in the shapes of all arguments and results, as text.

    Each distinct shape once, as jax writes them since April 2026; before, that of each of them.
    """
    lists = [(found.InAvalsLength, found.InAvals), (found.OutAvalsLength, found.OutAvals)]
    if found.UniqueAvalsLength():
        lists = [(found.UniqueAvalsLength, found.UniqueAvals)]
    left = MAX_SIZES
    for length, item in lists:
        if length() > MAX_ARGUMENTS:
            raise ExportLimitError(
                f"has {length()} arguments or results, at most {MAX_ARGUMENTS} are read"
            )
        for index in range(length()):
            shape = item(index)
            left -= shape.ShapeLength()
            if left < 0:
                raise ExportLimitError(f"has shapes of more than {MAX_SIZES} sizes together")
            yield from map(shape.Shape, range(shape.ShapeLength()))


def _is_number(size: bytes) -> bool:
    return len(size) <= MAX_DIGITS and size.isdigit()
