"""AMD's cards are read from the kernel's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from admission.agent.amd import Amd
from admission.agent.problems import AgentProblem
from admission.agent.reading import Card, Reading


@pytest.fixture
def sys_class(tmp_path: Path) -> Path:
    """A card of AMD, one of Intel, and a connector."""
    folder = tmp_path / "drm"
    for number, vendor in ((0, "0x8086"), (1, "0x1002")):
        device = tmp_path / "devices" / f"0000:0{number}:00.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "device").write_text("0x740f\n")
        if vendor == "0x1002":
            (device / "mem_info_vram_total").write_text("68702699520\n")
            (device / "mem_info_vram_used").write_text("11059200\n")
        (folder / f"card{number}").mkdir(parents=True)
        (folder / f"card{number}" / "device").symlink_to(device)
    (folder / "card1-DP-1").mkdir()
    return folder


def test_cards_are_named_by_their_place(sys_class: Path) -> None:
    """The files have no UUID on every card; the PCI address is there always."""
    found = Amd(sys_class).read()

    assert found == Reading(
        cards=(
            Card(
                gpu="0000:01:00.0",
                index="1",
                product="AMD 0x740f",
                total=68702699520,
                used=11059200,
            ),
        )
    )


def test_card_that_says_nonsense_is_a_problem(sys_class: Path) -> None:
    """And no crash."""
    (sys_class / "card1" / "device" / "mem_info_vram_used").write_text("busy\n")

    found = Amd(sys_class).read()

    assert found.cards == ()
    assert found.problems[AgentProblem.CARD_UNREADABLE].startswith("card 1: ")


def test_node_without_cards_has_none(tmp_path: Path) -> None:
    """And no problem: it may have another vendor's."""
    assert Amd(tmp_path / "none").read() == Reading()
