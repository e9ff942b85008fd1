"""Which cards are one card to cuDNN, and which library is asked about them."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from estimator.catalog import resolve_device
from estimator.cudnn import card_of
from estimator.cudnn.cards import properties_of
from estimator.cudnn.folders import VARIABLE, library_folders
from estimator.cudnn.support import Release, is_supported
from tests.estimator.cudnn.cases import A100, FOLDER, T4

TORCH = Release(version=92600, cuda=13)
VOLTA = Release(version=91002, cuda=12)


def test_cards_with_the_same_answers_are_one() -> None:
    """An A30 and a slice of an A100 are an A100."""
    for name in ("a30", "a100-sxm4-40gb", "a100-sxm4-80gb/1g.10gb"):
        assert card_of(resolve_device(name)) == A100


def test_turing_cards_are_told_apart_by_their_multiprocessors() -> None:
    """A T4 has 40 of them, a Titan RTX 72."""
    titan = card_of(resolve_device("titan-rtx"))

    assert card_of(resolve_device("t4")) == T4
    assert titan is not None
    assert titan.multiprocessors == 72


def test_a_card_given_by_its_figures_stands_for_its_architecture() -> None:
    """Without a number of multiprocessors it has that of the card in the table."""
    assert card_of(resolve_device("memory=15360MiB,compute=7.5")) == T4


def test_a_card_of_an_unknown_architecture_is_none() -> None:
    """A P100 is older than what the table has, and 9.9 is no card."""
    assert card_of(resolve_device("memory=16384MiB,compute=6.0")) is None
    assert card_of(resolve_device("memory=16384MiB,compute=9.9")) is None


def test_the_properties_have_the_card_s_own_multiprocessors() -> None:
    """The JSON is the architecture's with one figure replaced."""
    titan = card_of(resolve_device("titan-rtx"))
    assert titan is not None

    properties = orjson.loads(properties_of(titan) or b"")

    assert properties["multiProcessorCount"] == 72
    assert properties["deviceVer"] == 750
    assert len(properties) == 25


@pytest.mark.parametrize(
    ("release", "capability", "supported"),
    [
        (TORCH, (7, 5), True),
        (TORCH, (10, 0), True),
        (TORCH, (12, 0), True),
        (TORCH, (7, 0), False),
        (TORCH, (10, 3), False),
        (TORCH, (99, 0), False),
        (VOLTA, (7, 0), True),
        (VOLTA, (9, 0), True),
        (VOLTA, (10, 0), False),
        (Release(version=91700, cuda=12), (7, 0), False),
        (Release(version=92600, cuda=11), (8, 0), False),
        (Release(version=100000, cuda=13), (8, 0), False),
        (Release(version=90700, cuda=12), (8, 0), False),
    ],
)
def test_only_listed_cards_are_asked_about(
    release: Release, capability: tuple[int, int], supported: bool
) -> None:
    """Architectures a build dropped, crashed on or never heard of are not asked."""
    assert is_supported(release, capability) is supported


def test_the_wheel_is_found_without_an_import() -> None:
    """The folder of the installed wheel has the library."""
    assert FOLDER.parts[-3:] == ("nvidia", "cudnn", "lib")


def test_named_folders_come_after_the_wheel(tmp_path: Path) -> None:
    """Folders of the environment follow, once each; those without a library are left out."""
    wheel = tmp_path / "site" / "nvidia" / "cudnn" / "lib"
    named, empty = tmp_path / "named", tmp_path / "empty"
    for folder in (wheel, named, empty):
        folder.mkdir(parents=True)
    for folder in (wheel, named):
        (folder / "libcudnn.so.9").touch()
    variable = os.pathsep.join(map(str, (empty, named, wheel, named, "")))

    found = library_folders(["", str(tmp_path), str(tmp_path / "site")], {VARIABLE: variable})

    assert found == (wheel, named)
