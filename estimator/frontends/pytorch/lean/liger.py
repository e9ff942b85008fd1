"""Liger's layers: norms and gated products that keep less and work in place.

    model -> the same with layers replaced

* RMSNorm keeps its input and one fp32 value a row; the gradient of the input takes the place of
  that of the output.
* SiLU times up keeps both factors; their gradients take their places.

Source: linkedin/Liger-Kernel@v0.5.2 `src/liger_kernel/ops/rms_norm.py` and `ops/swiglu.py`.
Not modelled: the fused rotary embedding (in place in both), layer and group norms, and the fused
loss, which Liger turns on for causal models: state it as `training.loss: fused`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

GATED = ("gate_proj", "up_proj", "down_proj")


def with_liger(model: nn.Module) -> bool:
    """Replace what Liger replaces; return whether there was anything."""
    changed = False
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm") and hasattr(module, "weight"):
            module.forward = _norm(module)
            changed = True
        elif all(hasattr(module, name) for name in GATED) and _is_silu(module):
            module.forward = _gated(module)
            changed = True
    return changed


def _norm(module: Any) -> Any:
    def forward(hidden: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = Norm.apply(hidden, module.weight)
        return out

    return forward


def _gated(module: Any) -> Any:
    def forward(hidden: torch.Tensor) -> Any:
        return module.down_proj(Gate.apply(module.gate_proj(hidden), module.up_proj(hidden)))

    return forward


def _is_silu(module: Any) -> bool:
    activation = getattr(module, "act_fn", None)
    return "silu" in type(activation).__name__.lower() or activation is functional.silu


class Norm(torch.autograd.Function):
    """RMSNorm in one kernel."""

    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Return the normed rows."""
        rows = hidden.new_empty(hidden.numel() // hidden.shape[-1], dtype=torch.float32)
        ctx.save_for_backward(hidden, weight, rows)
        return torch.empty_like(hidden)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Return the gradient of the input in the place of *gradient*."""
        _, weight, _ = ctx.saved_tensors
        of_weight = torch.empty_like(weight) if ctx.needs_input_grad[1] else None
        return gradient.mul_(1.0), of_weight


class Gate(torch.autograd.Function):
    """SiLU of one factor times the other, in one kernel."""

    @staticmethod
    def forward(ctx: Any, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        """Return the product."""
        ctx.save_for_backward(gate, up)
        return torch.empty_like(gate)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Return both gradients in the places of the factors."""
        gate, up = ctx.saved_tensors
        return gate.detach().mul_(gradient), up.detach().mul_(gradient)
