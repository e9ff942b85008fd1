"""From `--gpu` and node labels to a Device."""

from __future__ import annotations

import pytest

from estimator.catalog import generic_device, resolve_device
from estimator.device import Device
from estimator.errors import SpecError
from estimator.units import GIB, MIB


def message_of(text: str) -> str:
    """Return the message with which *text* is refused as a device."""
    with pytest.raises(SpecError) as caught:
        resolve_device(text)
    assert {problem.path for problem in caught.value.problems} == {"gpu"}
    return str(caught.value)


def test_a_catalog_name_gives_the_whole_card() -> None:
    """The budget of a whole card is total less the driver's reservation."""
    assert resolve_device("A100-SXM4-40GB") == Device(
        name="a100-sxm4-40gb",
        total_bytes=40960 * MIB,
        reservation_bytes=625 * MIB,
        budget_bytes=(40960 - 625) * MIB,
        compute_capability=(8, 0),
        multiprocessors=108,
        catalog_name="a100-sxm4-40gb",
    )


def test_a_product_label_gives_the_same_card() -> None:
    """A label and the catalog name of a card are the same device."""
    by_name = resolve_device("a100-sxm4-80gb")

    assert resolve_device("NVIDIA-A100-SXM4-80GB") == by_name
    assert resolve_device("NVIDIA-A100-SXM4-80GB-SHARED") == by_name


@pytest.mark.parametrize(
    "text",
    [
        "a100-sxm4-80gb/3g.40gb",
        "NVIDIA-A100-SXM4-80GB/3G.40GB",
        "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb",
        "a100-sxm4-80gb/3g.40gb+me",
        "a100-sxm4-80gb/3g.40gb.me",
        "a100-sxm4-80gb/1c.3g.40gb",
    ],
)
def test_a_mig_profile_gives_the_slice(text: str) -> None:
    """A slice has no reservation of its own: all its memory is for the process."""
    assert resolve_device(text) == Device(
        name="a100-sxm4-80gb/3g.40gb",
        total_bytes=40192 * MIB,
        reservation_bytes=0,
        budget_bytes=40192 * MIB,
        compute_capability=(8, 0),
        multiprocessors=42,
        catalog_name="a100-sxm4-80gb",
    )


def test_figures_describe_a_card_outside_the_catalog() -> None:
    """`memory` is the NVML total; 256 MiB and a 128th of it are taken for the driver's."""
    device = resolve_device("memory=24576MiB,compute=8.6,driver=550.54.14")

    assert device == Device(
        name="memory=24576MiB,compute=8.6,driver=550.54.14",
        total_bytes=24 * GIB,
        reservation_bytes=(256 + 24576 // 128) * MIB,
        budget_bytes=(24576 - 256 - 24576 // 128) * MIB,
        compute_capability=(8, 6),
        driver="550.54.14",
    )


@pytest.mark.parametrize("memory", ["24GiB", "24gib", "24576 MiB", "25165824KiB", "25769803776B"])
def test_memory_may_be_given_in_any_binary_unit(memory: str) -> None:
    """B, KiB, MiB and GiB say the same size."""
    assert resolve_device(f"memory={memory},compute=8.6").total_bytes == 24 * GIB


def test_a_broken_byte_of_memory_is_dropped() -> None:
    """Capacities round down: 1.000001 GiB is 1 GiB and 1,073.7 bytes."""
    assert resolve_device("memory=1.000001GiB,compute=8.6").total_bytes == GIB + 1073


def test_an_old_driver_leaves_the_reservation_out_of_the_total() -> None:
    """Before driver 510, and on Kepler, total and visible differ by 12 MiB at most."""
    assert resolve_device("memory=16160MiB,compute=7.0,driver=470.82").reservation_bytes == 12 * MIB
    assert resolve_device("memory=11441MiB,compute=3.7").reservation_bytes == 12 * MIB
    assert resolve_device("memory=8119MiB,compute=6.1").reservation_bytes == 108 * MIB


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory=24GB,compute=8.6", "accepted are B, KiB, MiB, GiB"),
        ("memory=24,compute=8.6", "a number with B, KiB, MiB or GiB"),
        ("memory=24Gi,compute=8.6", "a number with B, KiB, MiB or GiB"),
        ("memory=-1GiB,compute=8.6", "is not a size"),
        ("memory=12MiB,compute=8.6", "out of range"),
        ("memory=9999999GiB,compute=8.6", "out of range"),
        ("memory=24GiB", "compute is missing"),
        ("compute=8.6", "memory is missing"),
        ("memory=24GiB,compute=8", "is not a compute capability"),
        ("memory=24GiB,compute=sm_86", "is not a compute capability"),
        ("memory=24GiB,compute=8.6,driver=new", "is not a driver version"),
        ("memory=24GiB,compute=8.6,cores=3", "'cores=3' is not known"),
        ("memory=24GiB,memory=24GiB,compute=8.6", "memory is given twice"),
    ],
)
def test_a_mistake_in_the_figures_is_named(text: str, expected: str) -> None:
    """The message has the value seen and what is accepted."""
    assert expected in message_of(text)


def test_every_mistake_in_the_figures_is_named_at_once() -> None:
    """Three mistakes make three problems."""
    with pytest.raises(SpecError) as caught:
        resolve_device("memory=24GB,compute=x,cores=3")

    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a100", "a100-sxm4-40gb"),
        ("h100", "h100-sxm5-80gb"),
        ("rtx309", "rtx3090"),
        ("NVIDIA-GeForce-RTX-3091", "NVIDIA-GeForce-RTX-3090"),
        ("a100-sxm-80gb", "a100-sxm4-80gb"),
    ],
)
def test_an_unknown_card_is_refused_with_close_names(text: str, expected: str) -> None:
    """The hint names cards that read alike."""
    message = message_of(text)

    assert f"{text!r} is not a known card" in message
    assert expected in message.partition("hint: did you mean ")[2]


@pytest.mark.parametrize("text", ["", "/", "\n", "x" * 5000, "a100\x1b[31m", "🂠"])
def test_nonsense_is_refused_with_a_short_printable_message(text: str) -> None:
    """No control characters and no long echoes reach the reader."""
    message = message_of(text)

    assert len(message) < 500
    assert message.replace("\n", "").isprintable()


def test_an_unknown_profile_is_refused_with_the_profiles_there_are() -> None:
    """A profile of another card is named as such, a card without MIG says so."""
    assert "accepted are 1g.10gb, 1g.20gb, 2g.20gb" in message_of("a100-sxm4-80gb/1g.5gb")
    assert "t4 has no MIG profiles" in message_of("t4/1g.5gb")
    assert "is not a known card" in message_of("NVIDIA-A100-SXM4-40GB-MIG-INVALID")


def test_a_job_without_a_card_gets_the_generic_one() -> None:
    """It has a compute capability and no capacity."""
    device = generic_device()

    assert device.name == "generic"
    assert device.compute_capability == (8, 0)
    assert device.budget_bytes is None
    assert device.usable_bytes is None
