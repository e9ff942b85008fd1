"""Operators whose result sizes depend on values: taken at their largest.

    operator, arguments -> result with room for every element

A mask is taken to select everything. `unique_consecutive` is the exception: models use it to check
that counts agree, so it finds one value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
MASKS = (torch.bool, torch.uint8)


def _nonzero(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty((x.numel(), x.dim()), dtype=torch.int64)


def _nonzero_numpy(x: torch.Tensor) -> list[torch.Tensor]:
    return [x.new_empty(x.numel(), dtype=torch.int64) for _ in range(x.dim())]


def _masked_select(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return x.new_empty(torch.broadcast_shapes(x.shape, mask.shape).numel())  # type: ignore[no-untyped-call]


def _unique_consecutive(x: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, ...]:
    whole = torch.int64
    return x.new_empty(1), x.new_empty(x.shape, dtype=whole), x.new_empty(1, dtype=whole)


def _unique(x: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, ...]:
    whole = torch.int64
    counts = x.new_empty(x.numel(), dtype=whole)
    return x.new_empty(x.numel()), x.new_empty(x.shape, dtype=whole), counts


def _ctc_loss(
    log_probs_TBC: torch.Tensor, targets: torch.Tensor, *_: Any, **__: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss and the forward variables, two a label and one more, for every frame.

    Source: pytorch `aten/src/ATen/native/cuda/LossCTC.cu` (`ctc_loss_gpu_template`).
    """
    frames, batch, _classes = log_probs_TBC.shape
    labels = targets.shape[1] if targets.dim() == 2 else -(-targets.numel() // batch)
    return log_probs_TBC.new_empty(batch), log_probs_TBC.new_empty(batch, frames, 2 * labels + 1)


def _ctc_loss_backward(_: torch.Tensor, log_probs: torch.Tensor, *__: Any) -> torch.Tensor:
    return torch.empty_like(log_probs)


LARGEST: dict[Any, Callable[..., Any]] = {
    aten.nonzero.default: _nonzero,
    aten.nonzero_numpy.default: _nonzero_numpy,
    aten.masked_select.default: _masked_select,
    aten.unique_consecutive.default: _unique_consecutive,
    aten._unique2.default: _unique,
    aten._ctc_loss.default: _ctc_loss,
    aten._ctc_loss.Tensor: _ctc_loss,
    aten._ctc_loss_backward.default: _ctc_loss_backward,
    aten._ctc_loss_backward.Tensor: _ctc_loss_backward,
}
"""Operator -> its result at the largest."""

INDEXING = frozenset(
    {
        aten.index.Tensor,
        aten.index_put.default,
        aten.index_put_.default,
        aten._index_put_impl_.default,
        aten._unsafe_index.Tensor,
        aten._unsafe_index_put.default,
    }
)
"""Operators that take masks among their indices, as their second argument."""


def without_masks(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return *args* with each mask among the indices as positions; None if there is none."""
    indices = args[1]
    if not any(isinstance(i, torch.Tensor) and i.dtype in MASKS for i in indices):
        return None
    positions: list[Any] = []
    for index in indices:
        if isinstance(index, torch.Tensor) and index.dtype in MASKS:
            made = torch.empty(index.numel(), dtype=torch.int64, device="meta")
            positions.extend([made] * index.dim())
        else:
            positions.append(index)
    return (args[0], positions, *args[2:])
