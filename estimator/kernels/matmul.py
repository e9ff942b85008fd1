"""Workspaces of cuBLAS and cuBLASLt.

    Device, environment, version -> bytes a handle

PyTorch gives each cuBLAS handle one workspace a stream, through its caching allocator, at the
handle's first use, and never frees it. A training process has two handles: the thread that runs
forward and the one autograd runs backward in. The block pins its segment.

Source: `parseChosenWorkspaceSize`, `parseCUDABlasLtWorkspaceSize`, `getCurrentCUDABlasHandle` in
PyTorch aten/src/ATen/cuda/CublasHandlePool.cpp
(rbarfinezhadfeli0/pytorch@0edb9997 mirror; newest read 2026-11: 32 MiB for majors 9, 10 and 12);
two 32 MiB blocks in a snapshot, pytorch/pytorch#144397.
Not modelled: the few versions that left the workspace to CUDA 12.2's own pool, ROCm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from estimator.device import Device
from estimator.notes import Unknown, UnknownCode
from estimator.trace import Kernel
from estimator.units import GIB, KIB, MIB

OPERATORS = frozenset(
    {
        "aten.mm",
        "aten.addmm",
        "aten.bmm",
        "aten.baddbmm",
        "aten.addbmm",
        "aten.mv",
        "aten.addmv",
        "aten.dot",
        "aten.vdot",
        "aten.linear",
        "aten.matmul",
        "aten._addmm_activation",
        "aten._scaled_mm",
        "aten._grouped_mm",
        "aten._int_mm",
    }
)
"""Operators that take a cuBLAS or cuBLASLt handle."""
WITH_BIAS = frozenset({"aten.addmm", "aten._addmm_activation", "aten._scaled_mm"})
"""Operators that go through cuBLASLt if the addend is a vector."""

DEFAULT = 2 * 4096 * KIB + 8 * 16 * KIB
"""`:4096:2:16:8`, 8,519,680 bytes."""
DEFAULT_HOPPER = 8 * 4096 * KIB
"""32 MiB from compute capability 9.0 on."""
MAX_WORKSPACE = 1 * GIB
"""More than this in a setting is a mistake, not a workspace."""
LT_DEFAULT = 1 * MIB
"""`CUBLASLT_WORKSPACE_SIZE` is in KiB and defaults to 1,024 (pytorch/pytorch#73328)."""
LT_UNIFIED_SINCE = (2, 9)
"""cuBLASLt shares the cuBLAS workspace by default from about here on (assumed; the docstring of
torch.backends.cuda.cublaslt_workspace_size in 2.15.0 says so)."""


def is_with_bias(kernel: Kernel) -> bool:
    """Return whether *kernel* goes through cuBLASLt: its first operand is a bias, or not known.

    Source: `useLtInterface`, `addmm_out_cuda_impl` in aten/src/ATen/native/cuda/Blas.cpp.
    Not modelled: the sizes and alignments for which PyTorch falls back to cuBLAS.
    """
    if kernel.operator not in WITH_BIAS:
        return False
    return not kernel.operands or len(kernel.operands[0].shape) == 1


def workspace_bytes(device: Device, environment: Mapping[str, str]) -> int:
    """Return the bytes of one handle's cuBLAS workspace."""
    default = DEFAULT_HOPPER if device.compute_capability[0] >= 9 else DEFAULT
    setting = environment.get("CUBLAS_WORKSPACE_CONFIG")
    if setting is None:
        return default
    asked = _asked_bytes(setting)
    return default if asked is None else asked


def lt_workspace_bytes(version: tuple[int, int], environment: Mapping[str, str]) -> int:
    """Return the bytes cuBLASLt takes of its own for one call; 0 where it shares cuBLAS's.

    Before the workspaces were unified it is allocated for the call and freed after it.
    """
    unified = environment.get("TORCH_CUBLASLT_UNIFIED_WORKSPACE")
    if unified == "1" or (unified is None and version >= LT_UNIFIED_SINCE):
        return 0
    text = environment.get("CUBLASLT_WORKSPACE_SIZE", "")
    if re.fullmatch(r"[0-9]{1,9}", text):
        return min(int(text) * KIB, MAX_WORKSPACE)
    return LT_DEFAULT


def unknowns_of(environment: Mapping[str, str]) -> tuple[Unknown, ...]:
    """Return what of the job's settings PyTorch itself would not understand."""
    setting = environment.get("CUBLAS_WORKSPACE_CONFIG")
    if setting is None or _asked_bytes(setting) is not None:
        return ()
    return (
        Unknown(
            code=UnknownCode.KERNEL,
            path="runtime.env.CUBLAS_WORKSPACE_CONFIG",
            reason=f"'{setting:.60}' is no :SIZE:COUNT in KiB up to 1 GiB; the default is charged",
        ),
    )


def _asked_bytes(setting: str) -> int | None:
    """Return what `:SIZE:COUNT…` (KiB) asks for, or None if it is not that or is absurd."""
    pairs = re.findall(r":([0-9]{1,9}):([0-9]{1,9})(?![0-9])", setting)
    asked = sum(int(size) * int(count) * KIB for size, count in pairs)
    return asked if pairs and asked <= MAX_WORKSPACE else None
