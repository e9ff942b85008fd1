"""What autograd keeps for backward where the job's PyTorch keeps more than the one that traces.

    version -> operator, its autograd rule in that version

Source: members of type `SavedVariable` in torch/csrc/autograd/generated/Functions.h of the wheels
1.4.0-1.13.1, 2.0.1-2.6.0, 2.8.0-2.15.0, compared node by node; for softmax also
pytorch/pytorch#65242, for relu #63027.
Not modelled: `split` before 1.8 and `repeat` before 1.7 kept their input, `embedding` of 1.13 its
weight (alive anyway); `elu` before 1.8 kept its result instead of its input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from estimator.frontends.pytorch.cuda_rules.below import below_autograd, wants_gradient
from estimator.frontends.pytorch.versions import Version

aten = torch.ops.aten
OLDEST: Version = (0, 0)
Function = torch.autograd.Function


class _Softmax(Function):
    """Keeps its input beside its result."""

    @staticmethod
    def forward(ctx: Any, x: Any, dim: int, half_to_float: bool, rule: Any, backward: Any) -> Any:
        with below_autograd():
            result = rule(x, dim, half_to_float)
        ctx.dim, ctx.backward_rule = dim, backward
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x, result = ctx.saved_tensors
        return ctx.backward_rule(gradient, result, ctx.dim, x.dtype), None, None, None, None


class _Relu(Function):
    """Keeps its input instead of its result."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        with below_autograd():
            return aten.relu(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return aten.threshold_backward(gradient, x, 0)


class _Hardtanh(Function):
    """In place: keeps the result, where later versions copy the input first."""

    @staticmethod
    def forward(ctx: Any, x: Any, low: float, high: float) -> Any:
        ctx.low, ctx.high = low, high
        with below_autograd():
            aten.hardtanh_(x, low, high)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (result,) = ctx.saved_tensors
        return aten.hardtanh_backward(gradient, result, ctx.low, ctx.high), None, None


class _Softplus(Function):
    """Keeps its result beside its input."""

    @staticmethod
    def forward(ctx: Any, x: Any, beta: float, threshold: float) -> Any:
        ctx.beta, ctx.threshold = beta, threshold
        with below_autograd():
            result = aten.softplus(x, beta, threshold)
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x, _ = ctx.saved_tensors
        return aten.softplus_backward(gradient, x, ctx.beta, ctx.threshold), None, None


class _Mean(Function):
    """Keeps its input, of which it needs the shape only."""

    @staticmethod
    def forward(ctx: Any, x: Any, dim: list[int] | None, keepdim: bool, dtype: Any) -> Any:
        ctx.dim, ctx.keepdim = dim, keepdim
        ctx.save_for_backward(x)
        with below_autograd():
            if dim is None:
                return aten.mean(x, dtype=dtype)
            return aten.mean(x, dim, keepdim, dtype=dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        dim = sorted(axis % x.dim() for axis in ctx.dim or range(x.dim())) if x.dim() else []
        if not ctx.keepdim:
            for axis in dim:
                gradient = gradient.unsqueeze(axis)
        count = 1
        for axis in dim:
            count *= x.shape[axis]
        return (gradient.expand(x.shape) / count).to(x.dtype), None, None, None


class _Stack(Function):
    """Keeps all it stacks."""

    @staticmethod
    def forward(ctx: Any, dim: int, *tensors: Any) -> Any:
        ctx.dim = dim
        ctx.save_for_backward(*tensors)
        with below_autograd():
            return aten.stack(tensors, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        kept = ctx.saved_tensors
        return None, *gradient.unbind(ctx.dim)[: len(kept)]


def _softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> Any:
    return _soft(x, dim, half_to_float, aten._softmax, aten._softmax_backward_data)


def _log_softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> Any:
    return _soft(x, dim, half_to_float, aten._log_softmax, aten._log_softmax_backward_data)


def _soft(x: torch.Tensor, dim: int, half_to_float: bool, rule: Any, backward: Any) -> Any:
    if wants_gradient(x):
        return _Softmax.apply(x, dim, half_to_float, rule, backward)
    with below_autograd():
        return rule(x, dim, half_to_float)


def _relu(x: torch.Tensor) -> Any:
    if wants_gradient(x):
        return _Relu.apply(x)
    with below_autograd():
        return aten.relu(x)


def _hardtanh(x: torch.Tensor, low: float = -1.0, high: float = 1.0) -> Any:
    if wants_gradient(x):
        return _Hardtanh.apply(x, low, high)
    with below_autograd():
        return aten.hardtanh_(x, low, high)


def _softplus(x: torch.Tensor, beta: float = 1.0, threshold: float = 20.0) -> Any:
    if wants_gradient(x):
        return _Softplus.apply(x, beta, threshold)
    with below_autograd():
        return aten.softplus(x, beta, threshold)


def _mean(x: torch.Tensor, *, dtype: torch.dtype | None = None) -> Any:
    if wants_gradient(x):
        return _Mean.apply(x, None, False, dtype)
    with below_autograd():
        return aten.mean(x, dtype=dtype)


def _mean_over(
    x: torch.Tensor,
    dim: list[int] | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Any:
    axes = list(dim) if dim else list(range(x.dim()))
    if wants_gradient(x):
        return _Mean.apply(x, axes, keepdim, dtype)
    with below_autograd():
        return aten.mean(x, axes, keepdim, dtype=dtype)


def _stack(tensors: list[torch.Tensor], dim: int = 0) -> Any:
    if wants_gradient(*tensors):
        return _Stack.apply(dim, *tensors)
    with below_autograd():
        return aten.stack(tensors, dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An operator whose autograd rule was another one in versions from *since* to *until*."""

    operator: str
    rule: Callable[..., Any]
    since: Version = OLDEST
    until: Version
    """First version that keeps what the newest does."""


KEPT = (
    Kept(operator="_softmax", rule=_softmax, until=(1, 11)),
    Kept(operator="_log_softmax", rule=_log_softmax, until=(1, 11)),
    Kept(operator="relu", rule=_relu, until=(1, 10)),
    Kept(operator="hardtanh_", rule=_hardtanh, until=(1, 10)),
    Kept(operator="softplus", rule=_softplus, until=(1, 11)),
    Kept(operator="mean", rule=_mean, since=(2, 0), until=(2, 2)),
    Kept(operator="mean.dim", rule=_mean_over, since=(1, 13), until=(2, 2)),
    Kept(operator="stack", rule=_stack, since=(1, 6), until=(1, 13)),
)
"""One row an operator."""


def rules_of(version: Version) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the operators whose autograd rule *version* has otherwise, with that rule."""
    for kept in KEPT:
        if kept.since <= version < kept.until:
            yield kept.operator, kept.rule
