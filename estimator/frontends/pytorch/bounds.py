"""Operators whose result sizes depend on values: taken at their largest.

    operator, arguments -> result with room for every element

A mask is taken to select everything unless more is known of it (`contents.py`).
`unique_consecutive` is the exception: models use it to check that counts agree, so it finds one
value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from estimator.frontends.pytorch.contents import Contents

aten = torch.ops.aten
MASKS = (torch.bool, torch.uint8)
SHORT = 1024
"""Elements of a mask whose positions, if it selects everything, are made for real."""


def _nonzero(contents: Contents, x: torch.Tensor) -> torch.Tensor:
    """Return room for the positions; a short list of all of them is real, so it can be read."""
    count = contents.selected(x)
    if count == x.numel() == max(x.shape, default=0) <= SHORT:
        return torch.stack(torch.unravel_index(torch.arange(count), x.shape), dim=1)
    return x.new_empty((count, x.dim()), dtype=torch.int64)


def _nonzero_numpy(contents: Contents, x: torch.Tensor) -> list[torch.Tensor]:
    return [x.new_empty(contents.selected(x), dtype=torch.int64) for _ in range(x.dim())]


def _masked_select(contents: Contents, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    whole = torch.broadcast_shapes(x.shape, mask.shape).numel()  # type: ignore[no-untyped-call]
    return x.new_empty(contents.selected(mask) * whole // max(1, mask.numel()))


def _unique_consecutive(
    _c: Contents, x: torch.Tensor, *_: Any, **__: Any
) -> tuple[torch.Tensor, ...]:
    whole = torch.int64
    return x.new_empty(1), x.new_empty(x.shape, dtype=whole), x.new_empty(1, dtype=whole)


def _unique(_c: Contents, x: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, ...]:
    whole = torch.int64
    counts = x.new_empty(x.numel(), dtype=whole)
    return x.new_empty(x.numel()), x.new_empty(x.shape, dtype=whole), counts


def _ctc_loss(
    _c: Contents, log_probs_TBC: torch.Tensor, targets: torch.Tensor, *_: Any, **__: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss and the forward variables, two a label and one more, for every frame.

    Source: pytorch `aten/src/ATen/native/cuda/LossCTC.cu` (`ctc_loss_gpu_template`).
    """
    frames, batch, _classes = log_probs_TBC.shape
    labels = targets.shape[1] if targets.dim() == 2 else -(-targets.numel() // batch)
    return log_probs_TBC.new_empty(batch), log_probs_TBC.new_empty(batch, frames, 2 * labels + 1)


def _ctc_loss_backward(
    _c: Contents, _: torch.Tensor, log_probs: torch.Tensor, *__: Any
) -> torch.Tensor:
    return torch.empty_like(log_probs)


def _packed(
    _c: Contents, x: torch.Tensor, lengths: torch.Tensor, batch_first: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the steps of all samples in one row, and how many samples have each step."""
    batch, steps = x.shape[:2] if batch_first else (x.shape[1], x.shape[0])
    known = [steps] * batch if lengths.is_meta else lengths.tolist()
    sizes = [sum(length > step for length in known) for step in range(max(known))]
    return x.new_empty(sum(sizes), *x.shape[2:]), torch.tensor(sizes, device="cpu")


def _packed_backward(_c: Contents, grad: torch.Tensor, size: Any, *_: Any) -> torch.Tensor:
    return grad.new_empty(size)


HOST = frozenset({aten._pack_padded_sequence.default, aten._pack_padded_sequence_backward.default})
"""Operators that take a tensor of the host beside those of the card."""

LARGEST: dict[Any, Callable[..., Any]] = {
    aten.nonzero.default: _nonzero,
    aten.nonzero_numpy.default: _nonzero_numpy,
    aten.masked_select.default: _masked_select,
    aten.unique_consecutive.default: _unique_consecutive,
    aten._unique2.default: _unique,
    aten._pack_padded_sequence.default: _packed,
    aten._pack_padded_sequence_backward.default: _packed_backward,
    aten._ctc_loss.default: _ctc_loss,
    aten._ctc_loss.Tensor: _ctc_loss,
    aten._ctc_loss_backward.default: _ctc_loss_backward,
    aten._ctc_loss_backward.Tensor: _ctc_loss_backward,
}
"""Operator -> its result at the largest."""


def _staying(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments of a copy to the host: it stays a stand-in, as there are no values."""
    device = kwargs.get("device")
    if device is not None and device.type != "meta":
        return args, {**kwargs, "device": torch.device("meta")}
    return args, kwargs


def _scalar_on_card(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments with a scalar of the host as a stand-in, which CUDA takes."""
    made = tuple(
        torch.empty((), dtype=value.dtype, device="meta")
        if isinstance(value, torch.Tensor) and not value.is_meta and not value.dim()
        else value
        for value in args
    )
    return made, kwargs


def _split_as_told(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments with what was taken at its largest cut to the sizes it is split in."""
    tensor, sizes, *rest = args
    axis = rest[0] if rest else kwargs.get("dim", 0)
    if tensor.dtype is torch.int64 and sum(sizes) < tensor.shape[axis]:
        tensor = tensor.narrow(axis, 0, sum(sizes))
    return (tensor, sizes, *rest), kwargs


ON_CARD: dict[Any, Callable[[Any, Any], tuple[Any, Any]]] = {
    aten._to_copy.default: _staying,
    aten.masked_fill.Tensor: _scalar_on_card,
    aten.masked_fill_.Tensor: _scalar_on_card,
    aten.split_with_sizes.default: _split_as_told,
}
"""Operators that `meta` refuses arguments of, and those arguments as they would be on a card."""

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


def without_masks(contents: Contents, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return *args* with each mask among the indices as positions; None if there is none.

    A mask that is assigned rows of a tensor selects as many as there are.
    """
    indices = args[1]
    if not any(isinstance(i, torch.Tensor) and i.dtype in MASKS for i in indices):
        return None
    values = args[2] if len(args) > 2 and isinstance(args[2], torch.Tensor) else None
    positions: list[Any] = []
    for index in indices:
        if isinstance(index, torch.Tensor) and index.dtype in MASKS:
            count = contents.selected(index)
            if values is not None and len(indices) == 1 and values.dim():
                rows = args[0].dim() - index.dim()
                if values.dim() > rows and values.shape[0] > 1:
                    count = values.shape[0]
                    contents.note_selected(index, count)
            made = torch.empty(count, dtype=torch.int64, device="meta")
            positions.extend([made] * index.dim())
        else:
            positions.append(index)
    return (args[0], positions, *args[2:])
