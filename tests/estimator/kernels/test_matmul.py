"""cuBLAS workspaces."""

from __future__ import annotations

import pytest

from estimator.device import ComputeCapability, Device
from estimator.kernels.matmul import lt_workspace_bytes, unknowns_of, workspace_bytes
from estimator.units import KIB, MIB


def card(capability: ComputeCapability) -> Device:
    """Return a card of this compute capability."""
    return Device(
        name="card",
        total_bytes=None,
        reservation_bytes=0,
        budget_bytes=None,
        compute_capability=capability,
    )


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((7, 5), 2 * 4096 * KIB + 8 * 16 * KIB),
        ((8, 9), 8_519_680),
        ((9, 0), 32 * MIB),
        ((12, 0), 33_554_432),
    ],
)
def test_the_default_grows_with_hopper(capability: ComputeCapability, expected: int) -> None:
    """8.125 MiB before compute capability 9.0, 32 MiB from there on."""
    assert workspace_bytes(card(capability), {}) == expected


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (":4096:8", 8 * 4096 * KIB),
        (":16:8", 8 * 16 * KIB),
        (":128:8:64:16:32:32", (8 * 128 + 16 * 64 + 32 * 32) * KIB),
        (":0:0", 0),
        ("many", 8_519_680),
    ],
)
def test_the_variable_is_read_as_pytorch_reads_it(setting: str, expected: int) -> None:
    """Pairs of :SIZE:COUNT in KiB add up; anything else means the default."""
    assert workspace_bytes(card((8, 0)), {"CUBLAS_WORKSPACE_CONFIG": setting}) == expected


def test_a_setting_pytorch_does_not_understand_is_named() -> None:
    """The default is used, and the unknown says so."""
    (unknown,) = unknowns_of({"CUBLAS_WORKSPACE_CONFIG": "many"})

    assert unknown.path == "runtime.env.CUBLAS_WORKSPACE_CONFIG"
    assert unknowns_of({"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}) == unknowns_of({}) == ()


def test_cublaslt_has_a_workspace_of_its_own_before_they_were_unified() -> None:
    """1 MiB a call, or what the variable says in KiB; nothing where it shares cuBLAS's."""
    assert lt_workspace_bytes((2, 4), {}) == 1 * MIB
    assert lt_workspace_bytes((2, 4), {"CUBLASLT_WORKSPACE_SIZE": "4096"}) == 4096 * KIB
    assert lt_workspace_bytes((2, 4), {"TORCH_CUBLASLT_UNIFIED_WORKSPACE": "1"}) == 0
    assert lt_workspace_bytes((2, 13), {}) == 0
    assert lt_workspace_bytes((2, 13), {"TORCH_CUBLASLT_UNIFIED_WORKSPACE": "0"}) == 1 * MIB
