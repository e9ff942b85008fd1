"""Adapters that change a few scattered weights: tensors with indices, which stand-ins cannot be.

    model of peft -> the same with forms that stand-ins take

* SHiRA adds its values into a copy of the weight in every pass. Its indices (int32) are on the
  card; every pass makes them int64, and the graph keeps those with the copy.
* FRoD makes its sparse factor from values and indices, sorts it, and opens it whole.

Source: huggingface/peft 0.21.2 `tuners/shira/layer.py`, `tuners/frod/layer.py`; what PyTorch makes
of a dense and a sparse sum and of `to_dense`: `native/sparse/cuda/SparseCUDATensorMath.cu`
(`add_out_dense_sparse_cuda`), `native/sparse/cuda/SparseCUDATensor.cu` (`coalesce_sparse_cuda`).
Not modelled: scratch of the sort, SHiRA on quantised weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from peft.tuners.frod.layer import FrodLayer
from peft.tuners.shira.layer import Linear as ShiraLinear
from torch.nn import functional

from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.standin import TINY

NAME = "default"
"""What peft calls an adapter that nobody named."""
INDICES = "indices_on_card"


@contextmanager
def drawn_without_values() -> Iterator[None]:
    """Let large permutations be drawn by size alone: their values take seconds a layer."""
    own = torch.randperm

    def drawn(number: int, *args: Any, **kwargs: Any) -> torch.Tensor:
        if number <= TINY:
            return own(number, *args, **kwargs)
        return torch.empty(number, dtype=kwargs.get("dtype") or torch.int64)

    with replaced((torch, "randperm", drawn)):
        yield


def no_mask(*_: Any, **__: Any) -> None:
    """Choose no weights for SHiRA: how many it has is known, which ones is not."""


def with_sparse_parts(model: torch.nn.Module) -> None:
    """Give the layers of *model* that work on sparse tensors forms that stand-ins take."""
    for module in list(model.modules()):
        if isinstance(module, ShiraLinear):
            weight = module.shira_weight[NAME]
            indices = torch.empty((2, weight.numel()), dtype=torch.int32, device="meta")
            module.register_buffer(INDICES, indices, persistent=False)
            module.forward = _scattered(module)
        elif isinstance(module, FrodLayer):
            module._get_frod_tensors = _factors(module)
            module._sparse_activation_mm = _sparse_product
            _leave_base_on_host(module)


def _leave_base_on_host(module: Any) -> None:
    """Take the frozen weight off the card if the job says so; without dropout no pass uses it."""
    is_unused = isinstance(module.frod_dropout[NAME], torch.nn.Identity)
    if is_unused and module.runtime_offload_base_weight.get(NAME):
        base = module.get_base_layer()
        nothing = torch.empty(0, dtype=base.weight.dtype, device="meta")
        base.weight = torch.nn.Parameter(nothing, requires_grad=False)


def _scattered(module: Any) -> Callable[..., torch.Tensor]:
    """Return the forward pass of a SHiRA layer."""

    def forward(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        base = module.get_base_layer()
        values = module.shira_weight[NAME] * module.scaling[NAME]
        changed = Scattered.apply(base.weight.clone(), values, getattr(module, INDICES))
        return functional.linear(x, changed, base.bias)

    return forward


class Scattered(torch.autograd.Function):
    """A dense tensor with sparse values added in its place."""

    @staticmethod
    def forward(
        ctx: Any, dense: torch.Tensor, values: torch.Tensor, indices: torch.Tensor
    ) -> torch.Tensor:
        """Add *values*, in the dtype of *dense*."""
        whole = indices.to(torch.int64)
        flat = whole[0] * dense.shape[1]
        flat += whole[1]
        dense.view(-1).index_add_(0, flat, values.to(dense.dtype))
        ctx.save_for_backward(whole)
        ctx.dtype = values.dtype
        ctx.mark_dirty(dense)
        return dense

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Widen the whole gradient to the dtype of the values, then choose those that count."""
        (whole,) = ctx.saved_tensors
        wide = gradient.to(ctx.dtype)
        flat = whole[0] * gradient.shape[1]
        flat += whole[1]
        dense = gradient if ctx.needs_input_grad[0] else None
        return dense, wide.reshape(-1).index_select(0, flat), None


class Sparse:
    """A sparse square matrix by its values and indices."""

    def __init__(self, values: torch.Tensor, indices: torch.Tensor, size: int) -> None:
        self.values, self.indices, self.size = values, indices, size

    def to_dense(self) -> torch.Tensor:
        """Return all of it."""
        dense: torch.Tensor = Opened.apply(self.values, self.indices, self.size)
        return dense


class Opened(torch.autograd.Function):
    """Sparse values among zeros."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, indices: torch.Tensor, size: int) -> torch.Tensor:
        """Sort the values and put them among zeros; the sorted indices are kept."""
        in_order = indices.clone()
        ctx.save_for_backward(in_order)
        dense = values.new_zeros((size, size))
        dense.view(-1).index_add_(0, in_order[0], values.clone())
        return dense

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Choose the gradients of the values."""
        (indices,) = ctx.saved_tensors
        return gradient.reshape(-1).index_select(0, indices[0]), None, None


def _factors(module: Any) -> Callable[..., Any]:
    def factors(adapter: str, *, dtype: torch.dtype, **_: Any) -> Any:
        of_left = module.frod_U[adapter].to(dtype=dtype)
        of_right = module.frod_V[adapter].to(dtype=dtype)
        values = module.frod_lambda_s_values[adapter].to(dtype=dtype)
        diagonal = module.frod_lambda_l[adapter].to(dtype=dtype)
        sparse = Sparse(values, module.frod_s_indices[adapter], of_right.shape[0])
        return of_left, of_right, sparse, diagonal

    return factors


def _sparse_product(rows: torch.Tensor, sparse: Sparse) -> torch.Tensor:
    """Return *rows* times the sparse factor: by way of the dense one, in 32 bits too.

    In fp32 PyTorch multiplies the sparse one itself, which needs less; its backward pass makes a
    dense gradient all the same.
    """
    return rows @ sparse.to_dense().t()
