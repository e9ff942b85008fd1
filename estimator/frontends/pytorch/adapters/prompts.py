"""Adaption prompts on GPT-NeoX, which peft has none for: litgpt's adapter.

    GPTNeoX model, prompt length -> the same model, prompts trained and all else frozen

From the third layer on, a layer has a prompt of a few embeddings and a gate for each head. The
prompt goes through the layer's own projection, and the queries attend to it beside the text.
Source: Lightning-AI/litgpt@05401183 `litgpt/adapter.py` (`CausalSelfAttention`).
Not modelled: adapter v2, which trains a scale and a bias for every linear layer, and biases and
norms too: it has the same name here and needs more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.gpt_neox import modeling_gpt_neox

MODEL_TYPE = "gpt_neox"
FIRST_LAYER = 2
SUFFIX = "_prompted"


def with_prompts(model: Any, length: int) -> nn.Module:
    """Return *model* with prompts of *length* embeddings, which alone are trained."""
    model.requires_grad_(False)
    config = model.config
    dtype = model.get_input_embeddings().weight.dtype
    for module in model.modules():
        if isinstance(module, modeling_gpt_neox.GPTNeoXAttention) and _has_prompt(module):
            wide = nn.Embedding(length, config.hidden_size, dtype=dtype, device="meta")
            module.adapter_wte = wide
            gates = torch.empty(1, 1, config.num_attention_heads, 1, dtype=dtype, device="meta")
            module.gating_factor = nn.Parameter(gates)
    own = config._attn_implementation
    ALL_ATTENTION_FUNCTIONS.register(own + SUFFIX, _prompted(own))
    if own in ALL_MASK_ATTENTION_FUNCTIONS:
        ALL_MASK_ATTENTION_FUNCTIONS.register(own + SUFFIX, ALL_MASK_ATTENTION_FUNCTIONS[own])
    config._attn_implementation = own + SUFFIX
    prompted: nn.Module = model
    return prompted


def _has_prompt(module: Any) -> bool:
    return int(module.layer_idx) >= FIRST_LAYER


def _prompted(own: str) -> Callable[..., Any]:
    """Return the attention *own* with the prompt's beside it."""

    def attend(module: Any, query: torch.Tensor, *rest: Any, **keywords: Any) -> Any:
        interface = ALL_ATTENTION_FUNCTIONS.get_interface(
            own, modeling_gpt_neox.eager_attention_forward
        )
        out, weights = interface(module, query, *rest, **keywords)
        if not hasattr(module, "adapter_wte"):
            return out, weights
        batch, heads, tokens, size = query.shape
        prompt = module.adapter_wte.weight.unsqueeze(0)
        projected = module.query_key_value(prompt).view(1, -1, heads, 3 * size).transpose(1, 2)
        _, key, value = projected.chunk(3, dim=-1)
        shape = (batch, heads, prompt.shape[1], size)
        mask = torch.ones(tokens, prompt.shape[1], dtype=torch.bool, device=query.device)
        beside = functional.scaled_dot_product_attention(
            query, key.expand(shape), value.expand(shape), attn_mask=mask
        )
        return out + module.gating_factor * beside.transpose(1, 2), weights

    return attend
