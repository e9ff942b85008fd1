"""The kernel `scaled_dot_product_attention` takes on a CUDA card.

    query, key, value, mask, Traits -> flash | efficient | math

Shape letters: B batch, H heads, L query length, S key length, D head size.
Source: pytorch/pytorch@001f694a `aten/src/ATen/native/transformers/cuda/sdp_utils.cpp` and
`transformers/attention.cpp`. Not modelled: cuDNN attention (sm 90 and 100), nested tensors,
`torch.backends.cuda.enable_*_sdp` switches.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import torch

from estimator.traits import Traits

aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)
MASK_ALIGNMENT = 16
FLASH_ALIGNMENT = 8
MAX_HEAD = 256


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
    traits: Traits,
) -> Backend:
    """Return the first backend in CUDA's order that takes these inputs."""
    if q_BHLD.dim() != 4 or k_BHSD.dim() != 4 or v_BHSD.dim() != 4:
        return Backend.MATH
    head, value_head = q_BHLD.shape[-1], v_BHSD.shape[-1]
    grouped = q_BHLD.shape[1] != k_BHSD.shape[1]
    half = q_BHLD.dtype in HALVES
    if traits.flash_attention and half and mask is None and head == value_head <= MAX_HEAD:
        return Backend.FLASH
    taken = half or q_BHLD.dtype is torch.float32
    alignment = 1 if q_BHLD.dtype is torch.float32 else FLASH_ALIGNMENT
    if alignment == 1 and traits.native_bf16:
        alignment = 4
    aligned = head % alignment == 0 and value_head % alignment == 0
    if traits.efficient_attention and taken and not grouped and aligned:
        return Backend.EFFICIENT
    return Backend.MATH


def attention_rule(traits: Traits) -> Callable[..., torch.Tensor]:
    """Return `scaled_dot_product_attention` as a card with *traits* runs it."""

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
        out: torch.Tensor
        match choose(query, key, value, attn_mask, traits=traits):
            case Backend.FLASH:
                out = _flash(query, key, value, dropout_p, is_causal, scale)
            case Backend.EFFICIENT:
                mask = _as_bias(attn_mask, query, key)
                needs_grad = any(t.requires_grad for t in (query, key, value))
                compute = torch.is_grad_enabled() and needs_grad
                out = aten._scaled_dot_product_efficient_attention(
                    query, key, value, mask, compute, dropout_p, is_causal, scale=scale
                )[0]
            case Backend.MATH:
                out = aten._scaled_dot_product_attention_math(
                    query, key, value, _as_float(attn_mask, query), dropout_p, is_causal, None,
                    scale=scale, enable_gqa=enable_gqa,
                )[0]  # fmt: skip
        return out

    return attention


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
