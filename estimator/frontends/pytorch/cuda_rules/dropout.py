"""Dropout as CUDA does it: the mask that is kept is boolean, one byte an element.

    x -> x, mask

Source: pytorch `aten/src/ATen/native/Dropout.cpp` (`is_fused_kernel_acceptable`). In-place dropout
is not fused and keeps a mask in the input's dtype, on CUDA too: left as it is.
"""

from __future__ import annotations

import torch


def dropout(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """Return `native_dropout` of *x*, or *x* itself where CUDA would not call it."""
    if not train or p == 0.0 or not x.numel():
        return x
    if 0.0 < p < 1.0:
        result: torch.Tensor = torch.ops.aten.native_dropout(x, p, train)[0]
        return result
    return x * torch.zeros_like(x)
