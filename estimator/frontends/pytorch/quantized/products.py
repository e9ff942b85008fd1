"""Products with quantised weights: what each keeps for backward, and what it makes on the way.

    x, packed weight -> x @ weight.T

Source: bitsandbytes 0.50.2 `autograd/_functions.py` (`MatMul4Bit`, `MatMul8bitLt`) and
`backends/cuda/ops.py` (`_gemm_4bit_use_custom_cuda`: more than a few hundred rows are multiplied
with the whole dequantised weight). Releases before 0.43.2 kept the input of a 4-bit product as a
plain attribute, which dies with the graph only (bitsandbytes#1270).
Not modelled: the fused kernel for few rows takes no scratch in newer releases; the columns of
outliers of int8 inputs are taken as none.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

KEEPS_NO_INPUT_SINCE = (0, 43, 2)
FUSED_SINCE = (0, 50)
FEW_ROWS = 4
"""Rows up to which the fused kernel is always taken (`_GEMM_4BIT_CUSTOM_FLOOR_M`)."""


def four_bit(x: torch.Tensor, weight: Any, bias: torch.Tensor | None, layer: Any) -> torch.Tensor:
    """Return the product of *x* with the 4-bit weight of *layer*."""
    out: torch.Tensor = FourBitProduct.apply(x, weight, bias, layer)
    return out


class FourBitProduct(torch.autograd.Function):
    """`MatMul4Bit`."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, layer: Any
    ) -> torch.Tensor:
        """Multiply, opening the weight unless a fused kernel does."""
        release = layer.form.release
        rows = x.numel() // x.shape[-1]
        ctx.layer, ctx.weight = layer, weight
        is_kept = release < KEEPS_NO_INPUT_SINCE and any(ctx.needs_input_grad[:2])
        ctx.kept = x if is_kept else None
        if rows <= FEW_ROWS and (release >= FUSED_SINCE or rows == 1):
            return x.new_empty((*x.shape[:-1], layer.out_features))
        return functional.linear(x, layer.dequantised().to(x.dtype), bias)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Open the weight again, and cast it to the dtype of the gradient."""
        bias = None
        if ctx.needs_input_grad[2]:
            bias = gradient.sum(0)
        given = None
        if ctx.needs_input_grad[0]:
            given = torch.matmul(gradient, ctx.layer.dequantised().to(gradient.dtype))
        return given, None, bias, None


def int8(
    x: torch.Tensor, weight: Any, bias: torch.Tensor | None, statistics: torch.Tensor
) -> torch.Tensor:
    """Return the product of *x* with an int8 weight."""
    out: torch.Tensor = Int8Product.apply(x, weight, bias, statistics)
    return out


class Int8Product(torch.autograd.Function):
    """`MatMul8bitLt` with frozen weights: inputs are quantised by row, outliers by column apart."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        statistics: torch.Tensor,
    ) -> torch.Tensor:
        """Quantise the input to int8 and multiply; the input is kept as an attribute."""
        flat = x.reshape(-1, x.shape[-1])
        half = flat.to(torch.float16)
        outliers = half.abs() >= 6.0
        quantised = torch.empty(half.shape, dtype=torch.int8, device=half.device)
        rows = torch.empty(half.shape[0], dtype=torch.float32, device=half.device)
        del outliers
        products = torch.empty(
            (half.shape[0], weight.shape[0]), dtype=torch.int32, device=half.device
        )
        out = torch.empty(products.shape, dtype=torch.float16, device=half.device).to(x.dtype)
        del quantised, rows, products
        if bias is not None:
            out += bias.to(out.dtype)
        needs = any(ctx.needs_input_grad[:2])
        ctx.kept = flat if needs else None
        ctx.shape, ctx.dtype = x.shape, x.dtype
        ctx.weight, ctx.statistics = weight, statistics
        return out.reshape(*x.shape[:-1], weight.shape[0])

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Open the weight in the dtype of the input."""
        given = None
        if ctx.needs_input_grad[0]:
            flat = gradient.reshape(-1, gradient.shape[-1]).contiguous()
            opened = ctx.weight.to(ctx.dtype).mul_(ctx.statistics.unsqueeze(1).mul(1.0 / 127.0))
            given = torch.matmul(flat.to(ctx.dtype), opened).view(ctx.shape)
        bias = gradient.sum(0) if ctx.needs_input_grad[2] else None
        return given, None, bias, None


class Opened(torch.autograd.Function):
    """A product with a weight that is opened whole, forward and backward (GPTQ, AWQ)."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, shape: tuple[int, int]
    ) -> torch.Tensor:
        """Multiply with the opened weight."""
        ctx.weight, ctx.opened = weight, shape
        return functional.linear(x, torch.empty(shape, dtype=x.dtype, device=x.device))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Open it again."""
        if not ctx.needs_input_grad[0]:
            return None, None, None
        opened = torch.empty(ctx.opened, dtype=gradient.dtype, device=gradient.device)
        return torch.matmul(gradient, opened), None, None
