"""Softmax as CUDA does it: fp16 in and fp32 out is one kernel, without a copy of the input.

    x, dim, dtype -> softmax of x

Source: `softmax` and `log_softmax` of ATen/native/SoftMax.cpp ask for a CUDA tensor, Half and a
result in Float; every other pair of dtypes is converted first, bf16 too.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

aten = torch.ops.aten
Softmax = Callable[[torch.Tensor, int, torch.dtype | None], torch.Tensor]


def softmax_rule(kernel: Callable[..., torch.Tensor]) -> Softmax:
    """Return `softmax.int` or `log_softmax.int`, whichever *kernel* belongs to."""

    def softmax(x: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        widens = x.dtype is torch.float16 and dtype is torch.float32
        if not widens and dtype is not None:
            x = x.to(dtype)
        return kernel(x, dim, widens)

    return softmax
