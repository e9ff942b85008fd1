"""cuBLAS workspaces."""

from __future__ import annotations

import pytest

from estimator.device import ComputeCapability, Device
from estimator.kernels.matmul import call_bytes, kept_bytes, unknowns_of, workspace_bytes
from estimator.trace import Kernel
from estimator.units import KIB, MIB

PRODUCT = Kernel(operator="aten.mm", operands=())
BIASED = Kernel(operator="aten.addmm", operands=())
SMALL = 2 * 4096 * KIB + 8 * 16 * KIB
"""`:4096:2:16:8`."""
NEW = (2, 13)


def card(capability: ComputeCapability = (8, 0)) -> Device:
    """Return a card of this compute capability."""
    return Device(
        name="card",
        total_bytes=None,
        reservation_bytes=0,
        budget_bytes=None,
        compute_capability=capability,
    )


@pytest.mark.parametrize(
    ("capability", "version", "expected"),
    [
        ((7, 5), (2, 13), SMALL),
        ((8, 9), (2, 13), SMALL),
        ((9, 0), (2, 0), 32 * MIB),
        ((10, 0), (2, 9), SMALL),
        ((10, 0), (2, 12), 32 * MIB),
        ((12, 0), (2, 13), 32 * MIB),
        ((11, 0), (2, 13), SMALL),
    ],
)
def test_the_default_grows_with_hopper_and_later_with_blackwell(
    capability: ComputeCapability, version: tuple[int, int], expected: int
) -> None:
    """8.125 MiB, or 32 MiB on architectures of which the version knows that."""
    assert workspace_bytes(card(capability), version, {}) == expected


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (":4096:8", 8 * 4096 * KIB),
        (":16:8", 8 * 16 * KIB),
        (":128:8:64:16:32:32", (8 * 128 + 16 * 64 + 32 * 32) * KIB),
        (":0:0", 0),
        ("many", SMALL),
    ],
)
def test_the_variable_is_read_as_pytorch_reads_it(setting: str, expected: int) -> None:
    """Pairs of :SIZE:COUNT in KiB add up; anything else means the default."""
    assert workspace_bytes(card(), NEW, {"CUBLAS_WORKSPACE_CONFIG": setting}) == expected


def test_a_setting_pytorch_does_not_understand_is_named() -> None:
    """The default is used, and the unknown says so."""
    (unknown,) = unknowns_of({"CUBLAS_WORKSPACE_CONFIG": "many"})

    assert unknown.path == "runtime.env.CUBLAS_WORKSPACE_CONFIG"
    assert unknowns_of({"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}) == unknowns_of({}) == ()


def test_pytorch_before_2_0_leaves_the_workspace_to_the_library() -> None:
    """No block of the caching allocator is cuBLAS's then; cuBLASLt has 1 MiB from 1.12 on."""
    assert kept_bytes(PRODUCT, card(), (1, 13), {}) == {}
    assert call_bytes(PRODUCT, card(), (1, 13), {}) == 0
    assert call_bytes(BIASED, card(), (1, 13), {}) == 1 * MIB
    assert call_bytes(BIASED, card(), (1, 10), {}) == 0


def test_a_handle_keeps_its_workspace_until_2_14_and_a_call_has_one_from_2_15_on() -> None:
    """The variable that 2.15 reads gives the old way back."""
    assert kept_bytes(PRODUCT, card(), (2, 14), {}) == {"cublas": SMALL}
    assert call_bytes(PRODUCT, card(), (2, 14), {}) == 0
    assert kept_bytes(PRODUCT, card(), (2, 15), {}) == {}
    assert call_bytes(PRODUCT, card(), (2, 15), {}) == SMALL
    assert call_bytes(BIASED, card(), (2, 15), {}) == 1 * MIB
    cached = {"TORCH_CUBLAS_WORKSPACE_CACHE": "1"}
    assert kept_bytes(PRODUCT, card(), (2, 15), cached) == {"cublas": SMALL}
    assert call_bytes(PRODUCT, card(), (2, 15), cached) == 0
    assert call_bytes(BIASED, card(), (2, 15), cached) == 0


def test_cublaslt_has_a_workspace_of_its_own_before_they_were_unified() -> None:
    """1 MiB a call, or what the variable says in KiB; nothing where it shares the handle's."""
    alone, shared = (
        {"TORCH_CUBLASLT_UNIFIED_WORKSPACE": "0"},
        {"TORCH_CUBLASLT_UNIFIED_WORKSPACE": "1"},
    )

    assert call_bytes(BIASED, card(), (2, 4), {}) == 1 * MIB
    assert call_bytes(BIASED, card(), (2, 4), {"CUBLASLT_WORKSPACE_SIZE": "4096"}) == 4096 * KIB
    assert call_bytes(BIASED, card(), (2, 8), shared) == 0
    assert call_bytes(BIASED, card(), NEW, {}) == 0
    assert call_bytes(BIASED, card(), NEW, alone) == 0
    assert kept_bytes(BIASED, card(), NEW, alone) == {"cublas": SMALL, "cublasLt": 1 * MIB}
