"""Product labels and their suffixes."""

from __future__ import annotations

import pytest

from estimator.catalog import ProductLabel, gpu_named, product_label, recognise


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("NVIDIA-A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA-A100-SXM4-80GB-SHARED", "a100-sxm4-80gb"),
        ("A100-SXM4-40GB-MIG-1g.5gb", "a100-sxm4-40gb"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me-SHARED", "a100-sxm4-40gb"),
        ("NVIDIA-H100-80GB-HBM3", "h100-sxm5-80gb"),
        ("Tesla-T4", "t4"),
        ("nvidia-tesla-t4", "t4"),
        ("GeForce-RTX-3090", "rtx3090"),
        ("NVIDIA TITAN X (Pascal)", "titan-x-pascal"),
        ("NVIDIA A100 80GB PCIe MIG 1g.10gb", "a100-pcie-80gb"),
    ],
)
def test_a_label_names_its_card_whatever_its_suffix(label: str, name: str) -> None:
    """Sharing and MIG suffixes, old names and nvidia-smi's spelling lead to the same card."""
    assert recognise(label) is gpu_named(name)


@pytest.mark.parametrize("label", ["NVIDIA-A100-SXM4-40GB-MIG-INVALID", "Radeon-VII", "", "NVIDIA"])
def test_a_label_of_no_usable_card_is_not_recognised(label: str) -> None:
    """An invalid MIG layout is unknown, not 0 GiB; other vendors are unknown."""
    assert recognise(label) is None


def test_the_total_tells_two_sizes_of_one_name_apart() -> None:
    """Without a total the smaller card is meant: a capacity is never overstated."""
    label = "NVIDIA-GeForce-RTX-4060-Ti"

    assert recognise(label) is gpu_named("rtx4060ti")
    assert recognise(label, total_mib=16380) is gpu_named("rtx4060ti-16gb")
    assert recognise(label, total_mib=8188) is gpu_named("rtx4060ti")


def test_a_label_comes_apart_into_card_profile_and_sharing() -> None:
    """MIG comes before the sharing mark, as GPU feature discovery appends them."""
    assert product_label("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED") == ProductLabel(
        card="a100-sxm4-40gb", profile="1g.5gb", is_shared=True
    )
    assert product_label("NVIDIA-L4-MIG-INVALID") == ProductLabel(card="l4", is_invalid=True)
