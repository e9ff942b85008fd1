"""RMSNorm as CUDA does it: one kernel from torch 2.9 on, the sum of its parts before.

    input, weight -> input normalised, one number a row

The kernel keeps the input and the numbers; the parts keep the normalised input too.
Source: `_fused_rms_norm` has kernels for CUDA and none for meta, where the dispatcher takes it
apart; its autograd node `FusedRmsNormBackward0` is in torch/csrc/autograd/generated/Functions.h of
2.9.1 and not of 2.8.0. `rms_norm_symint` of ATen/native/layer_norm.cpp does not call it for a
weight of another dtype or a channels-last input: those still come in parts.
"""

from __future__ import annotations

from typing import Any

import torch

from estimator.frontends.pytorch.cuda_rules.below import below_autograd, wants_gradient
from estimator.frontends.pytorch.versions import Version

aten = torch.ops.aten
FUSED_SINCE: Version = (2, 9)


class _RmsNorm(torch.autograd.Function):
    """Keeps input, numbers and weight, as `FusedRmsNormBackward0` does."""

    @staticmethod
    def forward(ctx: Any, x: Any, shape: list[int], weight: Any) -> Any:
        result, scale = _results(x, shape)
        ctx.shape = shape
        ctx.save_for_backward(x, scale, weight)
        ctx.mark_non_differentiable(scale)
        return result, scale

    @staticmethod
    def backward(ctx: Any, gradient: Any, _: Any) -> Any:
        x, scale, weight = ctx.saved_tensors
        mask = [ctx.needs_input_grad[0], ctx.needs_input_grad[2]]
        backward = aten._fused_rms_norm_backward
        into_x, into_weight = backward(gradient, x, ctx.shape, scale, weight, mask)
        return into_x, None, into_weight


def rms_norm(
    x: torch.Tensor,
    normalized_shape: list[int],
    weight: torch.Tensor | None,
    eps: float | None,  # noqa: ARG001 - part of the operator's signature
) -> Any:
    """Return what `_fused_rms_norm` returns on a card."""
    shape = list(normalized_shape)
    if wants_gradient(x) or (weight is not None and wants_gradient(weight)):
        return _RmsNorm.apply(x, shape, weight)
    return _results(x, shape)


def _results(x: torch.Tensor, shape: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a contiguous result and a number a row, in the precision sums are made in."""
    rows = [*x.shape[: x.dim() - len(shape)], *([1] * len(shape))]
    dtype = torch.float64 if x.dtype is torch.float64 else torch.float32
    with below_autograd():
        result = torch.empty_like(x, memory_format=torch.contiguous_format)
        return result, torch.empty(rows, dtype=dtype, device=x.device)
