"""Ask AMD's cards, through files of the kernel.

/sys/class/drm/card*/device -> Reading

Whole cards only: which process holds what is not in these files, so no container has a peak.
Source: Linux `Documentation/gpu/amdgpu/driver-misc.rst` (mem_info_vram_total, mem_info_vram_used).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from admission.agent.problems import AgentProblem
from admission.agent.reading import Card, Reading

CARDS = Path("/sys/class/drm")
VENDOR = "0x1002"
MAX_BYTES = 256


class Amd:
    """Every card of this node with AMD's driver."""

    def __init__(self, directory: Path = CARDS) -> None:
        self._directory = directory

    def read(self) -> Reading:
        """Return every card."""
        cards, problems = [], {}
        for index, device in self._devices():
            try:
                cards.append(_card(index, device))
            except (OSError, ValueError) as error:
                reason = f"card {index}: {getattr(error, 'strerror', None) or error}"
                problems[AgentProblem.CARD_UNREADABLE] = reason
        return Reading(cards=tuple(cards), problems=problems)

    def close(self) -> None:
        """Do nothing: no file is held open."""

    def _devices(self) -> Iterator[tuple[str, Path]]:
        """Yield number and folder of each card; connectors (`card0-DP-1`) are no cards."""
        for path in sorted(self._directory.glob("card[0-9]*")):
            device = path / "device"
            if "-" in path.name or not (device / "mem_info_vram_total").is_file():
                continue
            if _text(device / "vendor") == VENDOR:
                yield path.name.removeprefix("card"), device


def _card(index: str, device: Path) -> Card:
    return Card(
        gpu=device.resolve().name,
        index=index,
        product=f"AMD {_text(device / 'device')}",
        total=int(_text(device / "mem_info_vram_total")),
        used=int(_text(device / "mem_info_vram_used")),
    )


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MAX_BYTES).decode("ascii", errors="replace").strip()
