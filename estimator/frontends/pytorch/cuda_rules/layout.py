"""Memory formats as CUDA's convolutions choose them.

    convolution's arguments, result -> result in channels-last where cuDNN writes it so

Shape rules for `meta` always answer contiguous tensors, which would hide copies a card does not
make and show ones it does. Source: `cudnn_conv_suggest_memory_format` in ATen/native/ConvUtils.h,
`is_channels_last_strides_2d_s4` and `_3d_s5` in c10/core/MemoryFormat.h of torch 2.15.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from estimator.frontends.pytorch.cuda_rules.recurrent import with_reserve

aten = torch.ops.aten
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
ORDERS = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}


def is_channels_last(tensor: torch.Tensor) -> bool:
    """Return whether the strides of *tensor* say channels-last, ambiguous ones not."""
    order = ORDERS.get(tensor.dim())
    if order is None:
        return False
    sizes, strides = tensor.shape, tensor.stride()
    if strides[1] == 0:
        return False
    least = 0
    for axis in order:
        if sizes[axis] == 0 or strides[axis] < least:
            return False
        if axis == 0 and least == strides[1]:
            return False
        least = strides[axis] * max(1, sizes[axis])
    return True


def _convolution(args: Any, result: Any) -> Any:
    last = is_channels_last(args[0]) or is_channels_last(args[1])
    return _formatted(result, last)


def _convolution_backward(args: Any, result: Any) -> Any:
    """Return gradients of input and weight in the format of the pair; a bias has none."""
    last = is_channels_last(args[1]) or is_channels_last(args[2])
    return (_formatted(result[0], last), _formatted(result[1], last), result[2])


def _formatted(tensor: Any, last: bool) -> Any:
    if not last or not isinstance(tensor, torch.Tensor) or tensor.dim() not in FORMATS:
        return tensor
    return torch.empty_like(tensor, memory_format=FORMATS[tensor.dim()])


LAYOUTS: dict[Any, Callable[[Any, Any], Any]] = {
    aten.convolution.default: _convolution,
    aten.convolution_backward.default: _convolution_backward,
    aten._cudnn_rnn.default: with_reserve,
}
"""Operator -> its result as a card lays it out."""
