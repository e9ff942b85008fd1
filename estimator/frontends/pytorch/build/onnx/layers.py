"""Operators with weights or windows: products, convolutions, pooling, norms, attention.

    Call -> tensor

Source: onnx/onnx `docs/Operators.md`, release 1.23.2. Uneven padding is a copy of its own, as
models of torch that need it make one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn import functional

from estimator.frontends.pytorch.build.onnx.call import Call

_CONVOLUTIONS: Mapping[int, Any] = {
    1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d,
}  # fmt: skip
_TRANSPOSED: Mapping[int, Any] = {
    1: functional.conv_transpose1d, 2: functional.conv_transpose2d, 3: functional.conv_transpose3d,
}  # fmt: skip
_MAX_POOLS: Mapping[int, Any] = {
    1: functional.max_pool1d, 2: functional.max_pool2d, 3: functional.max_pool3d,
}  # fmt: skip
_MEAN_POOLS: Mapping[int, Any] = {
    1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d,
}  # fmt: skip


def _axes(call: Call, x: torch.Tensor) -> int:
    axes = x.dim() - 2
    if axes not in _CONVOLUTIONS:
        raise call.refused(f"works on {axes} axes")
    return axes


def _sizes(call: Call, name: str, axes: int, default: int = 1) -> list[int]:
    found = call.whole_list(name) or [default] * axes
    if len(found) != axes or not all(0 <= each <= 1 << 24 for each in found):
        raise call.refused(f"has an attribute {name} that is not for {axes} axes")
    return found


def _padding(call: Call, x: torch.Tensor, kernel: list[int]) -> tuple[list[int], list[int]]:
    """Return how much is added before and after each axis."""
    axes = len(kernel)
    strides, dilations = _sizes(call, "strides", axes), _sizes(call, "dilations", axes)
    mode = call.word("auto_pad", "NOTSET")
    if mode == "NOTSET":
        pads = _sizes(call, "pads", 2 * axes, 0)
        return pads[:axes], pads[axes:]
    if mode == "VALID":
        return [0] * axes, [0] * axes
    before, after = [], []
    for size, width, stride, dilation in zip(x.shape[2:], kernel, strides, dilations, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + (width - 1) * dilation + 1 - size)
        less, more = total // 2, total - total // 2
        before.append(more if mode == "SAME_LOWER" else less)
        after.append(less if mode == "SAME_LOWER" else more)
    return before, after


def _padded(
    x: torch.Tensor, before: list[int], after: list[int], value: float = 0.0
) -> tuple[torch.Tensor, list[int]]:
    """Return *x* and the padding that the operator itself can add."""
    if before == after:
        return x, before
    pairs = [each for pair in zip(reversed(before), reversed(after), strict=True) for each in pair]
    return functional.pad(x, pairs, value=value), [0] * len(before)


def _convolution(call: Call) -> torch.Tensor:
    x, weight = call.tensor(0), call.tensor(1)
    axes = _axes(call, x)
    before, after = _padding(call, x, list(weight.shape[2:]))
    x, padding = _padded(x, before, after)
    made: torch.Tensor = _CONVOLUTIONS[axes](
        x,
        weight,
        call.optional(2),
        stride=_sizes(call, "strides", axes),
        padding=padding,
        dilation=_sizes(call, "dilations", axes),
        groups=call.whole("group", 1),
    )
    return made


def _transposed(call: Call) -> torch.Tensor:
    x, weight = call.tensor(0), call.tensor(1)
    axes = _axes(call, x)
    if call.word("auto_pad", "NOTSET") != "NOTSET" or call.whole_list("output_shape"):
        raise call.refused("has a padding that follows from its output, which is not modelled")
    pads = _sizes(call, "pads", 2 * axes, 0)
    if pads[:axes] != pads[axes:]:
        raise call.refused("has an uneven padding, which is not modelled")
    made: torch.Tensor = _TRANSPOSED[axes](
        x,
        weight,
        call.optional(2),
        stride=_sizes(call, "strides", axes),
        padding=pads[:axes],
        output_padding=_sizes(call, "output_padding", axes, 0),
        groups=call.whole("group", 1),
        dilation=_sizes(call, "dilations", axes),
    )
    return made


def _max_pool(call: Call) -> torch.Tensor:
    x = call.tensor()
    axes = _axes(call, x)
    kernel = _sizes(call, "kernel_shape", axes)
    x, padding = _padded(x, *_padding(call, x, kernel), value=float("-inf"))
    made: torch.Tensor = _MAX_POOLS[axes](
        x,
        kernel,
        _sizes(call, "strides", axes),
        padding,
        _sizes(call, "dilations", axes),
        bool(call.whole("ceil_mode", 0)),
    )
    return made


def _mean_pool(call: Call) -> torch.Tensor:
    x = call.tensor()
    axes = _axes(call, x)
    kernel = _sizes(call, "kernel_shape", axes)
    x, padding = _padded(x, *_padding(call, x, kernel))
    made: torch.Tensor = _MEAN_POOLS[axes](
        x,
        kernel,
        _sizes(call, "strides", axes),
        padding,
        bool(call.whole("ceil_mode", 0)),
        bool(call.whole("count_include_pad", 0)),
    )
    return made


def _whole_mean(call: Call) -> torch.Tensor:
    x = call.tensor()
    return x.mean(list(range(2, x.dim())), keepdim=True)


def _whole_max(call: Call) -> torch.Tensor:
    x = call.tensor()
    return x.amax(list(range(2, x.dim())), keepdim=True)


def _batch_norm(call: Call) -> torch.Tensor:
    return functional.batch_norm(
        call.tensor(0),
        call.tensor(3).detach(),  # exporters store equal tensors once: it may be a bias too
        call.tensor(4).detach(),
        call.tensor(1),
        call.tensor(2),
        call.is_training,
        1.0 - call.fraction("momentum", 0.9),
        call.fraction("epsilon", 1e-5),
    )


def _layer_norm(call: Call) -> torch.Tensor:
    x = call.tensor()
    shape = list(x.shape[call.whole("axis", -1) :])
    weight, bias = call.optional(1), call.optional(2)
    epsilon = call.fraction("epsilon", 1e-5)
    return functional.layer_norm(
        x,
        shape,
        None if weight is None else weight.reshape(shape),
        None if bias is None else bias.reshape(shape),
        epsilon,
    )


def _rms_norm(call: Call) -> torch.Tensor:
    x = call.tensor()
    shape = list(x.shape[call.whole("axis", -1) :])
    return functional.rms_norm(x, shape, call.tensor(1), call.fraction("epsilon", 1e-5))


def _group_norm(call: Call) -> torch.Tensor:
    groups = call.whole("num_groups", 1)
    x, weight, bias = call.tensor(0), call.tensor(1), call.tensor(2)
    if weight.numel() != x.shape[1]:  # before operator set 21: one weight a group
        raise call.refused("has a weight for each group, which is not modelled")
    return functional.group_norm(x, groups, weight, bias, call.fraction("epsilon", 1e-5))


def _instance_norm(call: Call) -> torch.Tensor:
    return functional.instance_norm(
        call.tensor(0),
        weight=call.tensor(1),
        bias=call.tensor(2),
        eps=call.fraction("epsilon", 1e-5),
    )


def _response_norm(call: Call) -> torch.Tensor:
    return functional.local_response_norm(call.tensor(), call.whole("size", 5))


def _product(call: Call) -> torch.Tensor:
    return torch.matmul(call.tensor(0), call.tensor(1))


def _gemm(call: Call) -> torch.Tensor:
    left, right = call.tensor(0), call.tensor(1)
    left = left.t() if call.whole("transA", 0) else left
    right = right if call.whole("transB", 0) else right.t()
    bias = call.optional(2)
    is_plain = call.fraction("alpha", 1.0) == call.fraction("beta", 1.0) == 1.0
    if is_plain and (bias is None or bias.dim() == 1):
        return functional.linear(left, right, bias)
    made = torch.matmul(left, right.t()) * call.fraction("alpha", 1.0)
    return made if bias is None else made + bias * call.fraction("beta", 1.0)


def _einsum(call: Call) -> torch.Tensor:
    operands = [call.tensor(index) for index in range(len(call))]
    made: torch.Tensor = torch.einsum(call.word("equation", ""), *operands)
    return made


def _by_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)


def _attention(call: Call) -> torch.Tensor:
    """Return attention (operator set 23), by the fused kernel that torch picks."""
    query, key, value = (call.tensor(index) for index in range(3))
    heads, key_heads = call.whole("q_num_heads", 0), call.whole("kv_num_heads", 0)
    is_flat = query.dim() == 3
    if call.has(4) or call.has(5) or (is_flat and not (heads > 0 and key_heads > 0)):
        raise call.refused("has a cache, or no number of heads")
    if is_flat:
        query = _by_heads(query, heads)
        key, value = _by_heads(key, key_heads), _by_heads(value, key_heads)
    made = functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=call.optional(3),
        is_causal=bool(call.whole("is_causal", 0)) and not call.has(3),
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return made.transpose(1, 2).flatten(2) if is_flat else made


LAYERS: Mapping[str, Callable[[Call], torch.Tensor]] = {
    "Attention": _attention,
    "AveragePool": _mean_pool,
    "BatchNormalization": _batch_norm,
    "Conv": _convolution,
    "ConvTranspose": _transposed,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "GlobalAveragePool": _whole_mean,
    "GlobalMaxPool": _whole_max,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "LRN": _response_norm,
    "MatMul": _product,
    "MaxPool": _max_pool,
    "RMSNormalization": _rms_norm,
}
