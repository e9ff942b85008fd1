"""Workspaces of cuBLAS and cuBLASLt.

    Kernel, Device, environment, version -> bytes a handle keeps, bytes a call takes

Before torch 2.0 PyTorch set no workspace: cuBLAS had its own inside the library. From 2.0 to 2.14
it gives each handle one a stream, through its caching allocator, at the handle's first product, and
never frees it; a training process has two handles, of the thread that runs forward and the one
autograd runs backward in. From 2.15 on each product takes its workspace for the call.
cuBLASLt had one of its own a call, shares the handle's from 2.9 on, and has its own again in 2.15.

Source: aten/src/ATen/cuda/CublasHandlePool.cpp: `parseChosenWorkspaceSize`,
`parseCUDABlasLtWorkspaceSize`, `getCUDABlasLtWorkspace`, `isCUDABlasWorkspaceCachingEnabled`,
`getCurrentCUDABlasHandleWithWorkspace` of PyTorch; ATen/cuda/CUDAContext.h and CUDAContextLight.h
of the wheels: no `clearCublasWorkspaces` in 1.13.1, there in 2.0.1; no `getCUDABlasLtWorkspace` in
2.8.0, there in 2.9.1; no `isCUDABlasWorkspaceCachingEnabled` in 2.14.0, there in 2.15.0.
Pull requests pytorch/pytorch#91564 (sizes), #73439 (cuBLASLt's 1 MiB), #175344 and #189312
(Blackwell), #194311 (workspaces a call); two 32 MiB blocks in a snapshot, #144397.
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
LARGE = 8 * 4096 * KIB
"""32 MiB, on the architectures of `LARGE_SINCE`."""
MAX_WORKSPACE = 1 * GIB
"""More than this in a setting is a mistake, not a workspace."""
LT_DEFAULT = 1 * MIB
"""`CUBLASLT_WORKSPACE_SIZE` is in KiB and defaults to 1,024 (pytorch/pytorch#73328)."""

Version = tuple[int, int]

SINCE: Version = (2, 0)
"""First version that gives cuBLAS a workspace."""
LT_SINCE: Version = (1, 12)
"""First version whose biased products have a cuBLASLt workspace (dated by its pull request)."""
LT_UNIFIED_SINCE: Version = (2, 9)
"""First version in which cuBLASLt shares the workspace of the handle."""
A_CALL_SINCE: Version = (2, 15)
"""First version in which a workspace lives as long as its call."""
LARGE_SINCE: Mapping[int, Version] = {9: (2, 0), 10: (2, 12), 11: (2, 15), 12: (2, 12)}
"""Major compute capability -> first version with the large default (Blackwell: dated by its pull
requests)."""
CACHE = "TORCH_CUBLAS_WORKSPACE_CACHE"
UNIFIED = "TORCH_CUBLASLT_UNIFIED_WORKSPACE"
TRUE = frozenset({"1", "ON", "on", "TRUE", "true", "YES", "yes", "Y", "y"})
"""Texts that `c10::utils::check_env` takes for true."""


def is_with_bias(kernel: Kernel) -> bool:
    """Return whether *kernel* goes through cuBLASLt: its first operand is a bias, or not known.

    Source: `useLtInterface`, `addmm_out_cuda_impl` in aten/src/ATen/native/cuda/Blas.cpp.
    Not modelled: the sizes and alignments for which PyTorch falls back to cuBLAS.
    """
    if kernel.operator not in WITH_BIAS:
        return False
    return not kernel.operands or len(kernel.operands[0].shape) == 1


def kept_bytes(
    kernel: Kernel, device: Device, version: Version, environment: Mapping[str, str]
) -> Mapping[str, int]:
    """Return the workspaces that the handle of *kernel* keeps from its first call on."""
    if not _is_kept(version, environment):
        return {}
    kept = {"cublas": workspace_bytes(device, version, environment)}
    if version >= LT_UNIFIED_SINCE and _has_own(kernel, version, environment):
        kept["cublasLt"] = _lt_bytes(version, environment)
    return kept


def call_bytes(
    kernel: Kernel, device: Device, version: Version, environment: Mapping[str, str]
) -> int:
    """Return the workspace that *kernel* takes for the call alone."""
    is_kept = _is_kept(version, environment)
    if is_with_bias(kernel):
        if not _has_own(kernel, version, environment):
            return 0
        return 0 if is_kept and version >= LT_UNIFIED_SINCE else _lt_bytes(version, environment)
    if version < SINCE or is_kept:
        return 0
    return workspace_bytes(device, version, environment)


def workspace_bytes(device: Device, version: Version, environment: Mapping[str, str]) -> int:
    """Return the bytes of one cuBLAS workspace in a *version* that sets one."""
    since = LARGE_SINCE.get(device.compute_capability[0])
    default = LARGE if since is not None and version >= since else DEFAULT
    setting = environment.get("CUBLAS_WORKSPACE_CONFIG")
    if setting is None:
        return default
    asked = _asked_bytes(setting)
    return default if asked is None else asked


def _is_kept(version: Version, environment: Mapping[str, str]) -> bool:
    """Return whether handles keep their workspaces."""
    if version < A_CALL_SINCE:
        return version >= SINCE
    return environment.get(CACHE) in TRUE


def _has_own(kernel: Kernel, version: Version, environment: Mapping[str, str]) -> bool:
    """Return whether *kernel* has a workspace of cuBLASLt's own, not that of its handle."""
    if not is_with_bias(kernel):
        return False
    setting = environment.get(UNIFIED)
    if not _is_kept(version, environment):
        return True
    return setting not in TRUE and (setting is not None or version < LT_UNIFIED_SINCE)


def _lt_bytes(version: Version, environment: Mapping[str, str]) -> int:
    """Return the bytes of cuBLASLt's own workspace."""
    if version < LT_SINCE:
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
