"""Devices of nodes: the node's own figures first, the catalog for what it does not say."""

from __future__ import annotations

import pytest

from estimator.catalog import device_for_product
from estimator.device import Device
from estimator.errors import SpecError
from estimator.units import MIB


def usable_mib(product: str, total_mib: int, *, driver: str | None = None) -> int:
    """Return the usable memory of a node's card in whole MiB."""
    device = device_for_product(product, total_mib=total_mib, driver=driver)
    assert device.usable_bytes == device.budget_bytes
    assert device.usable_bytes is not None
    return device.usable_bytes // MIB


def test_a_recognised_node_has_its_own_total_and_the_catalogs_reservation() -> None:
    """An L40S with the usual total keeps 479 MiB for the driver."""
    device = device_for_product(
        "NVIDIA-L40S-SHARED", total_mib=46068, compute_capability=(8, 9), driver="550.54"
    )

    assert device == Device(
        name="NVIDIA-L40S-SHARED",
        total_bytes=46068 * MIB,
        reservation_bytes=479 * MIB,
        budget_bytes=(46068 - 479) * MIB,
        compute_capability=(8, 9),
        driver="550.54",
        multiprocessors=142,
        catalog_name="l40s",
    )


def test_drivers_that_count_differently_leave_the_same_usable_memory() -> None:
    """A V100 says 16,160 MiB with an old driver and 16,384 with a new one; 16,148 are visible."""
    assert usable_mib("Tesla-V100-SXM2-16GB", 16160) == 16148
    assert usable_mib("Tesla-V100-SXM2-16GB", 16384) == 16148
    assert usable_mib("Tesla-T4", 15109) == usable_mib("Tesla-T4", 15360)


def test_a_total_below_what_is_visible_elsewhere_is_not_raised() -> None:
    """An A100 that says 39,538 MiB has no more than that."""
    assert usable_mib("NVIDIA-A100-SXM4-40GB", 39538) == 39538
    assert usable_mib("NVIDIA-A100-SXM4-40GB", 39538, driver="535.1") == 39538 - (256 + 309)


def test_another_memory_layout_keeps_the_reservation() -> None:
    """An RTX A6000 with ECC on, an A10G with ECC off, an RTX 3060 of 8 GB."""
    assert usable_mib("NVIDIA-RTX-A6000", 46068) == 46068 - 464
    assert usable_mib("NVIDIA-A10G", 24564) == 24564 - (256 + 192)
    assert usable_mib("NVIDIA-GeForce-RTX-3060", 8192) == 8192 - 251


def test_the_label_of_a_slice_has_the_memory_of_the_slice() -> None:
    """Under MIG `single`, gpu.memory is the slice's and the product carries the profile."""
    device = device_for_product("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", total_mib=4864)

    assert device == Device(
        name="NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
        total_bytes=4864 * MIB,
        reservation_bytes=0,
        budget_bytes=4864 * MIB,
        compute_capability=(8, 0),
        multiprocessors=14,
        catalog_name="a100-sxm4-40gb",
    )


def test_an_unknown_product_falls_back_on_the_rule() -> None:
    """A card nobody listed: 256 MiB and a 128th, no catalog name, its own compute capability."""
    device = device_for_product("NVIDIA-X1000", total_mib=32768, compute_capability=(13, 0))

    assert device.reservation_bytes == (256 + 32768 // 128) * MIB
    assert device.catalog_name is None
    assert device.compute_capability == (13, 0)


@pytest.mark.parametrize("total_mib", [1, 100, 255, 300, 1024])
def test_a_tiny_total_never_leaves_less_than_nothing(total_mib: int) -> None:
    """The reservation is at most the total, known card or not."""
    assert usable_mib("NVIDIA-L40S", total_mib) >= 0
    assert usable_mib("NVIDIA-X1000", total_mib) >= 0


@pytest.mark.parametrize(
    ("product", "total_mib"), [("NVIDIA-A100-SXM4-40GB-MIG-INVALID", 0), ("Tesla-T4", 0)]
)
def test_a_card_without_memory_is_refused(product: str, total_mib: int) -> None:
    """An invalid MIG layout is unknown to the caller, not a card of 0 GiB."""
    with pytest.raises(SpecError, match="offers no memory"):
        device_for_product(product, total_mib=total_mib)
