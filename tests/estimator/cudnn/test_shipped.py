"""The answers that come with us. Figures are cuDNN 9.10.2's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from estimator.catalog import resolve_device
from estimator.cudnn import Card, Direction, card_of
from estimator.cudnn.shipped import VERSIONS, Shipped, catalog_folder, file_name, read_table
from estimator.cudnn.support import is_supported
from tests.estimator.cudnn.cases import A100, H100, RTX_PRO_6000, T4, V100, convolution

VERSION = 91002
A6000 = Card(compute_capability=(8, 6), multiprocessors=84)
L4 = Card(compute_capability=(8, 9), multiprocessors=58)
CARDS = (V100, T4, A100, A6000, L4, H100)
FLOAT = 4
WINOGRAD_512 = convolution(channels=(512, 512), size=7)
"""The 3x3 convolutions in the last stage of a ResNet-50 at 32 images."""
REDUCE_256 = convolution(Direction.WEIGHT, channels=(256, 128), window=1)
"""The first of its second stage."""


def test_every_file_is_a_table_its_release_has_answers_for() -> None:
    """Six cards, at most 5 MB in all, and nothing else lies there."""
    folder = catalog_folder()
    sizes = {each.name: len(each.read_bytes()) for each in folder.iterdir()}

    assert set(sizes) == {file_name(version, card) for version in VERSIONS for card in CARDS}
    assert sum(sizes.values()) < 5_000_000
    for card in CARDS:
        table = read_table(VERSION, card, folder)
        assert table is not None
        assert (table.release.version, table.card) == (VERSION, card)
        assert is_supported(table.release, card.compute_capability)
        assert "nvidia-cudnn-cu12==9.10.2.21" in table.made["asked"]


@pytest.mark.parametrize("card", [V100, T4], ids=["V100", "T4"])
def test_winograd_holds_the_weight_twice(card: Card) -> None:
    """512 to 512 channels, 3x3: the weight and its 4x4 transform, 25 MiB."""
    (answer,) = Shipped(VERSION).ask([WINOGRAD_512], card)

    assert answer is not None
    assert answer.version == VERSION
    assert answer.instant[0].workspace == (3 * 3 + 4 * 4) * 512 * 512 * FLOAT + 2048


@pytest.mark.parametrize(
    ("card", "nbytes"),
    [(V100, 0), (T4, 0), (A100, 159_121_552), (H100, 161_218_704)],
    ids=["V100", "T4", "A100", "H100"],
)
def test_weight_gradients_of_resnet50_are_copied_for_tensor_cores(card: Card, nbytes: int) -> None:
    """Where fp32 has tensor cores: 98 + 49 MiB of copies and sums; elsewhere nothing."""
    (answer,) = Shipped(VERSION).ask([REDUCE_256], card)

    assert answer is not None
    assert answer.instant[0].workspace == nbytes


def test_a_shape_without_an_answer_says_so() -> None:
    """The table holds chosen shapes: 33 images are not among them."""
    shipped = Shipped(VERSION)
    odd = convolution(batch=33, channels=(512, 512), size=7)

    answers = shipped.ask([odd, WINOGRAD_512], V100)

    assert [answer is None for answer in answers] == [True, False]
    assert shipped.reason == (
        "no answer for 1 shape in the shipped table for cuDNN 9.10.2 on compute capability 7.0"
    )


@pytest.mark.parametrize("card", [RTX_PRO_6000, replace(T4, multiprocessors=72)])
def test_a_card_without_a_table_says_so(card: Card) -> None:
    """Blackwell, and a Turing of another size."""
    shipped = Shipped(VERSION)
    major, minor = card.compute_capability

    assert shipped.ask([WINOGRAD_512], card) == [None]
    assert shipped.reason == (
        f"there is no shipped table for cuDNN 9.10.2 on compute capability {major}.{minor}"
        f" with {card.multiprocessors} multiprocessors"
    )


def test_a_broken_file_is_a_reason(tmp_path: Path) -> None:
    """Every question of its card is unknown; other cards are not touched."""
    (tmp_path / file_name(VERSION, A100)).write_bytes(b"broken")
    good = catalog_folder().joinpath(file_name(VERSION, V100)).read_bytes()
    (tmp_path / file_name(VERSION, V100)).write_bytes(good)
    shipped = Shipped(VERSION, folder=tmp_path)

    assert shipped.ask([WINOGRAD_512], A100) == [None]
    assert shipped.reason is not None
    assert shipped.reason.endswith("8.0 cannot be read: it is cut off or too long")
    assert shipped.ask([WINOGRAD_512], V100) != [None]


def test_a_file_under_another_name_is_not_believed(tmp_path: Path) -> None:
    """The answers of a V100 are not those of an A100."""
    good = catalog_folder().joinpath(file_name(VERSION, V100)).read_bytes()
    (tmp_path / file_name(VERSION, A100)).write_bytes(good)
    shipped = Shipped(VERSION, folder=tmp_path)

    assert shipped.ask([WINOGRAD_512], A100) == [None]
    assert shipped.reason is not None
    assert shipped.reason.endswith("it is of another version or card")


def test_cards_of_the_catalog_have_the_cards_of_the_tables() -> None:
    """A V100 of 32 GB, an A30 or an RTX 3090 is asked about as the card that stands for it."""
    names = ("v100-sxm2-32gb", "t4", "a30", "rtx3090", "l40s", "h200")

    assert [card_of(resolve_device(name)) for name in names] == list(CARDS)
