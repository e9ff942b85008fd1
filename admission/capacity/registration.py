"""The cards that HAMi's and Volcano's device plugins write down on a node.

    annotations -> Registration

Source: Project-HAMi/HAMi 4707fb02 `docs/develop/protocol.md`, `pkg/device/devices.go`
(`DecodeNodeDevices`, and JSON in newer versions), `pkg/device-plugin/…/plugin/register.go` (types
begin with `NVIDIA-`); volcano-sh/volcano ed72c7c8
`pkg/scheduler/api/devices/nvidia/vgpu/utils.go` (`decodeNodeDevices`).
Memory is MiB, times `deviceMemoryScaling` where an operator overcommits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from admission.capacity.labels import whole

HAMI = "hami.io/node-nvidia-register"
VOLCANO = "volcano.sh/node-vgpu-register"
ANNOTATIONS = (HAMI, VOLCANO)
MAX_LENGTH = 100_000
MAX_MEMORY_MIB = 1 << 31
_TYPE = {HAMI: 4, VOLCANO: 3}
"""Which of the fields between commas is the type; the third one is the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a device plugin says that a node has."""

    kinds: tuple[tuple[str, int], ...]
    """Product and memory in MiB of each kind of card."""
    count: int
    """Cards, not the shares they are cut into."""


def registration_of(annotations: Mapping[str, str], key: str) -> Registration | None:
    """Return what the annotation *key* says; None if it is not there or cannot be read."""
    text = annotations.get(key, "")
    if not text or len(text) > MAX_LENGTH:
        return None
    cards = list(_of_json(text) if text.startswith("[") else _of_text(text, _TYPE[key]))
    if not cards:
        return None
    return Registration(kinds=tuple(dict.fromkeys(cards)), count=len(cards))


def _of_text(text: str, type_index: int) -> Iterator[tuple[str, int]]:
    for part in text.split(":"):
        fields = part.split(",")
        if len(fields) > type_index:
            memory = whole(fields[2])
            if memory and memory < MAX_MEMORY_MIB:
                yield _product(fields[type_index]), memory


def _of_json(text: str) -> Iterator[tuple[str, int]]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    for item in found if isinstance(found, list) else ():
        memory = item.get("devmem") if isinstance(item, dict) else None
        if isinstance(memory, int) and 0 < memory < MAX_MEMORY_MIB:
            yield _product(str(item.get("type", ""))), memory


def _product(text: str) -> str:
    """Return `NVIDIA-Tesla V100-PCIE-32GB` as GPU feature discovery writes it."""
    name = text.strip().replace(" ", "-")
    return name.removeprefix("NVIDIA-") if name.startswith("NVIDIA-NVIDIA-") else name
