"""The kernel `scaled_dot_product_attention` takes on a CUDA card.

    query, key, value, mask, Traits, version -> flash | efficient | math

Shape letters: B batch, H heads, L query length, S key length, D head size.
Source: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp and transformers/attention.cpp of
pytorch/pytorch@001f694a and of PyTorch's earlier releases: before 2.1 no fused kernel takes a mask
and the efficient one no dropout, before 2.2 flash is the first FlashAttention.
Not modelled: cuDNN attention (sm 90 and 100; it keeps what flash keeps), flash on sm 75 before 2.2,
heads that flash leaves to the efficient kernel on sm 86, 89 and 120 (both keep no scores), nested
tensors, `torch.backends.cuda.enable_*_sdp` switches.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import torch

from estimator.frontends.pytorch.cuda_rules.below import below_autograd, wants_gradient
from estimator.frontends.pytorch.versions import Version
from estimator.traits import Traits

aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)
MASK_ALIGNMENT = 16
FLASH_ALIGNMENT = 8
MAX_HEAD = 256
MAX_HEAD_FIRST_FLASH = 128
MASKS_SINCE: Version = (2, 1)
"""First version whose efficient kernel takes masks and dropout."""
SECOND_FLASH_SINCE: Version = (2, 2)
FILLS_IN_PLACE_SINCE: Version = (2, 15)
"""First version known to zero masked rows in place (measured; the change may be older)."""
SAFE_SOFTMAX_SINCE: Version = (2, 5)
"""First version whose math path computes in fp32 and gives rows that are all masked zeros."""


class Backend(StrEnum):
    FLASH = "flash"
    EFFICIENT = "efficient"
    MATH = "math"


def choose(
    q_BHLD: torch.Tensor,
    k_BHSD: torch.Tensor,
    v_BHSD: torch.Tensor,
    mask: torch.Tensor | None,
    *,
    dropout: float,
    is_causal: bool,
    traits: Traits,
    version: Version,
) -> Backend:
    """Return the first backend in CUDA's order that takes these inputs."""
    tensors = (q_BHLD, k_BHSD, v_BHSD)
    if any(tensor.dim() != 4 or not tensor.numel() for tensor in tensors):
        return Backend.MATH
    if any(tensor.stride(-1) != 1 and tensor.shape[-1] != 1 for tensor in tensors):
        return Backend.MATH
    if traits.flash_attention and mask is None:
        square = not is_causal or q_BHLD.shape[2] == k_BHSD.shape[2]
        if square and _fits_flash(*tensors, version=version):
            return Backend.FLASH
    if version < MASKS_SINCE and (mask is not None or dropout > 0):
        return Backend.MATH
    if mask is not None and mask.stride(-1) != 1:
        return Backend.MATH
    if traits.efficient_attention and _fits_efficient(*tensors, traits=traits, version=version):
        return Backend.EFFICIENT
    return Backend.MATH


def _fits_flash(
    q_BHLD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, version: Version
) -> bool:
    head = q_BHLD.shape[-1]
    if q_BHLD.dtype not in HALVES or not head == k_BHSD.shape[-1] == v_BHSD.shape[-1]:
        return False
    if version >= SECOND_FLASH_SINCE:
        return head <= MAX_HEAD
    grouped = q_BHLD.shape[1] != k_BHSD.shape[1]
    return not grouped and head % FLASH_ALIGNMENT == 0 and head <= MAX_HEAD_FIRST_FLASH


def _fits_efficient(
    q_BHLD: torch.Tensor,
    k_BHSD: torch.Tensor,
    v_BHSD: torch.Tensor,
    *,
    traits: Traits,
    version: Version,
) -> bool:
    heads = {tensor.shape[1] for tensor in (q_BHLD, k_BHSD, v_BHSD)}
    if len(heads) > 1:
        return False
    match q_BHLD.dtype:
        case torch.float32:
            alignment = 4 if traits.native_bf16 else 1
        case torch.float16:
            alignment = FLASH_ALIGNMENT
        case torch.bfloat16 if traits.native_bf16 or version < SECOND_FLASH_SINCE:
            alignment = FLASH_ALIGNMENT
        case _:
            return False
    return all(tensor.shape[-1] % alignment == 0 for tensor in (q_BHLD, v_BHSD))


def attention_rule(traits: Traits, version: Version) -> Callable[..., torch.Tensor]:
    """Return `scaled_dot_product_attention` as *version* runs it on a card with *traits*."""

    def attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        backend = choose(
            query,
            key,
            value,
            attn_mask,
            dropout=dropout_p,
            is_causal=is_causal,
            traits=traits,
            version=version,
        )
        match backend:
            case Backend.FLASH:
                return _flash(query, key, value, dropout_p, is_causal, scale)
            case Backend.EFFICIENT:
                mask = _as_bias(attn_mask, query, key)
                compute = wants_gradient(query, key, value)
                out: torch.Tensor = aten._scaled_dot_product_efficient_attention(
                    query, key, value, mask, compute, dropout_p, is_causal, scale=scale
                )[0]
                return out
            case Backend.MATH:
                if enable_gqa:
                    key, value = (_repeated(x, query) for x in (key, value))
                mask = _as_float(attn_mask, query)
                if is_causal:
                    shape = (query.shape[-2], key.shape[-2])
                    whole = torch.ones(shape, dtype=torch.bool, device=query.device)
                    mask = _as_float(whole.tril(), query)
                return _math(query, key, value, mask, dropout_p, scale, version=version)

    return attention


def _repeated(x_BHSD: torch.Tensor, q_BHLD: torch.Tensor) -> torch.Tensor:
    """Return keys or values once for every query head.

    Source: `pre_process_group_query_attention_input` in transformers/attention.cpp.
    """
    times = q_BHLD.shape[-3] // x_BHSD.shape[-3]
    return x_BHSD if times == 1 else x_BHSD.repeat_interleave(times, dim=-3)


def _math(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout_p: float,
    scale: float | None,
    *,
    version: Version,
) -> torch.Tensor:
    """Return `_scaled_dot_product_attention_math`: query and key are scaled apart.

    Written out because a dispatch mode makes the C++ one add the mask out of place, which a run
    without one does in place.
    """
    dtype = query.dtype
    if version >= SAFE_SOFTMAX_SINCE and dtype in HALVES:
        query, key, value = query.float(), key.float(), value.float()
        mask = None if mask is None else mask.float()
    factor = (query.shape[-1] ** -0.5 if scale is None else abs(scale)) ** 0.5
    scores = torch.matmul(query * factor, key.transpose(-2, -1) * factor)
    if mask is not None:
        scores = scores.add_(mask)
    if version >= SAFE_SOFTMAX_SINCE:
        weights = torch._safe_softmax(scores, -1)
    else:
        weights = torch.softmax(scores, -1)
    del scores
    if dropout_p > 0:
        weights = torch.dropout(weights, dropout_p, True)
    also_returned = weights.to(dtype)  # dead as soon as the caller takes the first result
    result = torch.matmul(weights, value).to(dtype)
    del also_returned
    return result


class _SafeSoftmax(torch.autograd.Function):
    """Keeps its result, as `SafeSoftmaxBackward0` does."""

    @staticmethod
    def forward(ctx: Any, x: Any, dim: int, dtype: Any, in_place: bool) -> Any:
        result = _safe(x, dim, dtype, in_place=in_place)
        ctx.dim, ctx.dtype = dim, x.dtype
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (result,) = ctx.saved_tensors
        gradient = aten._softmax_backward_data(gradient, result, ctx.dim, ctx.dtype)
        return gradient, None, None, None


def safe_softmax_rule(version: Version) -> Callable[..., Any]:
    """Return `_safe_softmax` with the tensors it is made of, which one operator would hide."""
    in_place = version >= FILLS_IN_PLACE_SINCE

    def safe_softmax(x: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
        if wants_gradient(x):
            return _SafeSoftmax.apply(x, dim, dtype, in_place)
        return _safe(x, dim, dtype, in_place=in_place)

    return safe_softmax


def _safe(x: torch.Tensor, dim: int, dtype: torch.dtype | None, *, in_place: bool) -> torch.Tensor:
    """Return softmax with zeros for rows that are all masked.

    Source: `_safe_softmax` in aten/src/ATen/native/transformers/attention.cpp, which takes a new
    tensor for the result; the allocations of 2.15.0 on a CPU show none.
    """
    with below_autograd():
        result: torch.Tensor = aten._softmax(x if dtype is None else x.to(dtype), dim, False)
        rows = aten.all(aten.eq(x, -torch.inf), dim, True)
        if in_place:
            return result.masked_fill_(rows, 0.0)
        zero = torch.zeros((), dtype=result.dtype, device=x.device)
        kept: torch.Tensor = aten.where(rows, zero, result)
        return kept


def _flash(
    q_BHLD: torch.Tensor,
    k_BHSD: torch.Tensor,
    v_BHSD: torch.Tensor,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> torch.Tensor:
    """Return flash attention; heads that are no multiple of 8 are padded first, as in C++."""
    head = q_BHLD.shape[-1]
    scale = head**-0.5 if scale is None else scale
    pad = -head % FLASH_ALIGNMENT
    if pad:
        q_BHLD, k_BHSD, v_BHSD = (
            torch.constant_pad_nd(x, [0, pad]) for x in (q_BHLD, k_BHSD, v_BHSD)
        )
    out_BHLD: torch.Tensor = aten._scaled_dot_product_flash_attention(
        q_BHLD, k_BHSD, v_BHSD, dropout_p, is_causal, False, scale=scale
    )[0]
    return out_BHLD[..., :head] if pad else out_BHLD


def _as_float(mask: torch.Tensor | None, query: torch.Tensor) -> torch.Tensor | None:
    """Return a boolean mask as additive, in the query's dtype (`convert_boolean_attn_mask`)."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), -torch.inf)


def _as_bias(
    mask: torch.Tensor | None, q_BHLD: torch.Tensor, k_BHSD: torch.Tensor
) -> torch.Tensor | None:
    """Return *mask* as the efficient kernel wants it: additive, rows padded to 16, expanded."""
    additive = _as_float(mask, q_BHLD)
    if additive is None:
        return None
    length = additive.shape[-1]
    pad = -length % MASK_ALIGNMENT
    if pad and length != 1:
        additive = torch.constant_pad_nd(additive, [0, pad])[..., :length]
    batch, heads, queries, _ = q_BHLD.shape
    return additive.expand(batch, heads, queries, k_BHSD.shape[2])
