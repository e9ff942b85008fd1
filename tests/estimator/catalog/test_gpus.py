"""The table of cards: complete, sourced and free of contradictions."""

from __future__ import annotations

from itertools import pairwise

import pytest

from estimator.catalog import Gpu, Origin, all_gpus, gpu_named, recognise, resolve_device
from estimator.catalog.products import card_key

GROUND_TRUTH = (
    "a100-sxm4-40gb",
    "a100-sxm4-80gb",
    "b200",
    "h100-sxm5-80gb",
    "h200",
    "k40m",
    "k80",
    "l40s",
    "rtx2070-super",
    "rtx3060",
    "rtx3070",
    "rtx3090",
    "rtx4060",
    "rtx4090",
    "rtx-a6000",
    "titan-rtx",
    "titan-x-pascal",
    "titan-xp",
    "titan-z",
    "v100-sxm2-16gb",
)
MIG_CARDS = ("a30", "a100-sxm4-40gb", "a100-sxm4-80gb", "h100-sxm5-80gb", "h100-nvl-94gb", "h200")


def known(name: str) -> Gpu:
    """Return a card that must be in the catalog."""
    gpu = gpu_named(name)
    assert gpu is not None, name
    return gpu


def test_the_catalog_reaches_from_kepler_to_blackwell() -> None:
    """At least 45 cards of nine architectures are listed."""
    gpus = all_gpus()

    assert len(gpus) >= 45
    assert {gpu.architecture for gpu in gpus} == {
        "kepler",
        "maxwell",
        "pascal",
        "volta",
        "turing",
        "ampere",
        "ada",
        "hopper",
        "blackwell",
    }


@pytest.mark.parametrize("name", GROUND_TRUTH)
def test_every_card_of_the_ground_truth_resolves(name: str) -> None:
    """A case of the ground truth names its card exactly as the catalog does."""
    device = resolve_device(name)

    assert device.name == name
    assert device.catalog_name == name


@pytest.mark.parametrize("gpu", all_gpus(), ids=lambda gpu: gpu.name)
def test_figures_of_a_card_agree_with_each_other(gpu: Gpu) -> None:
    """A process gets less than the total, but most of it, and every figure has a source."""
    assert 0.95 * gpu.total_mib < gpu.usable_mib < gpu.total_mib
    assert gpu.total_source.text
    assert gpu.reservation_source.text
    assert (3, 0) <= gpu.compute_capability <= (12, 1)
    assert 1 <= gpu.multiprocessors <= 200
    assert gpu.name == gpu.name.casefold()


def test_names_are_unique() -> None:
    """No two cards share a catalog name."""
    names = [gpu.name for gpu in all_gpus()]

    assert len(names) == len(set(names))


def test_cards_with_one_label_differ_in_size() -> None:
    """A label belongs to one card, or to sizes far enough apart for a node's total to tell."""
    cards: dict[str, list[Gpu]] = {}
    for gpu in all_gpus():
        keys = [card_key(label) for label in (gpu.product, *gpu.labels)]
        assert len(keys) == len(set(keys)), gpu.name
        for key in keys:
            cards.setdefault(key, []).append(gpu)

    shared = {key: sorted(gpu.total_mib for gpu in found) for key, found in cards.items()}

    assert all(low * 1.1 < high for sizes in shared.values() for low, high in pairwise(sizes))
    assert [key for key, sizes in shared.items() if len(sizes) > 1] == [
        "geforce-rtx-3080",
        "geforce-rtx-4060-ti",
    ]


@pytest.mark.parametrize("gpu", all_gpus(), ids=lambda gpu: gpu.name)
def test_a_card_is_found_by_each_of_its_labels(gpu: Gpu) -> None:
    """Labels are recognised with and without the vendor, in any case, and as nvidia-smi writes."""
    for label in (gpu.product, *gpu.labels):
        for spelling in (label, label.removeprefix("NVIDIA-"), label.replace("-", " ").lower()):
            assert recognise(spelling, total_mib=gpu.total_mib) is gpu


@pytest.mark.parametrize("name", MIG_CARDS)
def test_slices_of_a_card_are_smaller_than_the_card(name: str) -> None:
    """Profiles grow with their slices, the largest is the card's own usable memory within 2 %."""
    gpu = known(name)
    sizes = [profile.memory_mib for profile in gpu.mig]

    assert sizes == sorted(sizes)
    assert sizes[-1] <= gpu.total_mib
    assert sizes[-1] == pytest.approx(gpu.usable_mib, rel=0.03)


@pytest.mark.parametrize("gpu", [gpu for gpu in all_gpus() if gpu.mig], ids=lambda gpu: gpu.name)
def test_a_slice_is_not_larger_than_its_nominal_size(gpu: Gpu) -> None:
    """`3g.40gb` holds at most 40 GiB and at least 85 % of it."""
    for profile in gpu.mig:
        nominal = int(profile.name.partition("g.")[2].removesuffix("gb")) * 1024

        assert 0.85 * nominal < profile.memory_mib <= nominal, profile.name
        assert profile.multiprocessors <= gpu.multiprocessors


def test_a_card_that_rests_on_a_guess_says_so() -> None:
    """The reservation of an RTX 5090 is a rule's, the one of an A100 is published arithmetic."""
    assert known("rtx5090").reservation_source.origin is Origin.ASSUMED
    assert known("rtx5090").is_assumed
    assert known("a100-sxm4-40gb").reservation_source.origin is Origin.DERIVED
    assert not known("a100-sxm4-40gb").is_assumed


def test_usable_memory_is_what_processes_were_seen_to_get() -> None:
    """The lowest figure published for a card is what the catalog promises."""
    assert known("a100-sxm4-40gb").usable_mib == 40335
    assert known("a100-sxm4-80gb").usable_mib == 81050
    assert known("h100-sxm5-80gb").usable_mib == 81009
    assert known("v100-sxm2-16gb").usable_mib == 16148
    assert known("rtx3090").usable_mib == 24115
    assert known("rtx3060").usable_mib == 12037


def test_an_unknown_name_is_no_card() -> None:
    """Names are exact: no prefix, no guess."""
    assert gpu_named("a100") is None
    assert gpu_named("") is None
    assert gpu_named(" A100-SXM4-40GB ") is known("a100-sxm4-40gb")
