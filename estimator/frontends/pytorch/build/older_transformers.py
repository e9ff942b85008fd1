"""Make transformers run as an older release of it does.

    model, release -> changes to transformers while it is built, and while it runs

Only what moves memory is changed; which families differ and since when is in
`transformers_history.py`.
Not modelled: the sum of mask and position of T5, one score tensor that lives through a stack;
causal masks of GPT-2 and GPT-Neo as `where` on a boolean buffer (the same bytes kept); contiguous
copies for SDPA with a mask before 4.48; the loss of GPT-Neo, which went back to 16 bits after it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.nn import functional
from transformers import PreTrainedModel, cache_utils, masking_utils
from transformers.integrations import sdpa_attention
from transformers.loss import loss_utils
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from estimator.frontends.pytorch.build import transformers_history as history
from estimator.frontends.pytorch.build.releases import Release
from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.versions import Version

OLDEST: Release = (0,)
IGNORED = -100
"""Label of what no loss is taken of."""


def family_of(kind: type) -> str:
    """Return the family of a model's or configuration's class, as in `transformers_history`."""
    module = kind.__module__.rpartition(".")[2]
    return module.removeprefix("modeling_").removeprefix("configuration_")


def release_with(family: str, release: Release) -> Release:
    """Return *release*, or the first one that has *family* if that came later."""
    return max(release, history.FIRST.get(family, OLDEST))


@contextmanager
def built_as(release: Release) -> Iterator[None]:
    """Let models that are built choose the attention that *release* chooses by default."""
    original = PreTrainedModel.get_correct_attn_implementation

    def chosen(self: Any, requested_attention: str | None, is_init_check: bool = False) -> Any:
        found = original(self, requested_attention, is_init_check)
        since = history.SDPA_SINCE.get(family_of(type(self)), OLDEST)
        return "eager" if found == "sdpa" and release < since else found

    with replaced((PreTrainedModel, "get_correct_attn_implementation", chosen)):
        yield


def widen_logits(model: Any, release: Release) -> None:
    """Let *model* return fp32 logits if *release* upcasts them before it returns them."""
    family = family_of(type(model))
    head = model.get_output_embeddings()
    if head is not None and release < history.WIDE_LOGITS_UNTIL.get(family, OLDEST):
        head.register_forward_hook(lambda _module, _inputs, logits: logits.float())


@contextmanager
def run_as(model: Any, release: Release, *, torch_version: Version) -> Iterator[None]:
    """Let *model* compute and keep what *release* does on that PyTorch."""
    family = family_of(type(model))
    release = release_with(family, release)
    with ExitStack() as stack:
        if release < history.PADS_LABELS_SINCE:
            shared = history.SHARED_LOSS_SINCE.get(family, history.SHARED_LOSS)
            losses = dict(loss_utils.LOSS_MAPPING, ForCausalLM=_shifted_loss(release >= shared))
            for module in _holders("LOSS_MAPPING", loss_utils.LOSS_MAPPING):
                stack.enter_context(replaced((module, "LOSS_MAPPING", losses)))
        if release < history.CACHE_COPIES_SINCE:
            layer = cache_utils.DynamicLayer
            stack.enter_context(replaced((layer, "update", _keeping(layer.update))))
        stack.enter_context(_attending_as(family, release, torch_version))
        yield


@contextmanager
def _attending_as(family: str, release: Release, torch_version: Version) -> Iterator[None]:
    """Let attention take masks, keys and values in the form *release* gives it."""
    masks, attentions = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS, ALL_ATTENTION_FUNCTIONS
    with ExitStack() as stack:
        if release < history.SKIPS_MASKS_SINCE:
            stack.enter_context(_entry(masks, "eager", _always_masked(masks["eager"])))
        if history.SHARED_SDPA <= release < history.SDPA_TAKES_VIEWS_SINCE:
            copying = _copying(attentions["sdpa"], release)
            stack.enter_context(_entry(attentions, "sdpa", copying))
        if release < history.GROUPED_SDPA_SINCE or torch_version < history.GROUPED_SDPA_NEEDS:
            stack.enter_context(
                replaced((sdpa_attention, "use_gqa_in_sdpa", lambda *_, **__: False))
            )
        if family in history.WIDE_SOFTMAX and release < history.WIDE_SOFTMAX_UNTIL:
            module = sys.modules[f"transformers.models.{family}.modeling_{family}"]
            stack.enter_context(replaced((module, "eager_attention_forward", _biased_attention)))
        yield


@contextmanager
def _entry(table: Any, name: str, value: Any) -> Iterator[None]:
    """Set an entry of one of transformers' tables of functions inside the block."""
    before = table[name]
    table[name] = value
    try:
        yield
    finally:
        table[name] = before


def _holders(name: str, value: Any) -> list[Any]:
    """Return the modules of transformers that hold *value* as *name*."""
    modules = [m for path, m in sys.modules.items() if path.startswith("transformers.")]
    return [module for module in modules if vars(module).get(name) is value]


def _shifted_loss(upcasts: bool) -> Callable[..., torch.Tensor]:
    """Return the causal loss that copies all logits but the last.

    Source: `ForCausalLMLoss` in transformers/loss/loss_utils.py of 4.48.3, and the heads of 4.45.2,
    which do not upcast here.
    """

    def loss(
        logits: torch.Tensor,
        labels: torch.Tensor,
        vocab_size: int,
        *_: Any,
        ignore_index: int = IGNORED,
        **__: Any,
    ) -> torch.Tensor:
        if upcasts:
            logits = logits.float()
        shifted_logits = logits[..., :-1, :].contiguous().view(-1, vocab_size)
        shifted_labels = labels[..., 1:].contiguous().view(-1)
        return functional.cross_entropy(shifted_logits, shifted_labels, ignore_index=ignore_index)

    return loss


def _keeping(update: Callable[..., Any]) -> Callable[..., Any]:
    """Return `DynamicLayer.update` that keeps a first forward's keys and values as they are."""

    def kept(self: Any, keys: torch.Tensor, values: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if self.is_initialized:
            return update(self, keys, values, *args, **kwargs)
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values
        return keys, values

    return kept


def _always_masked(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return *make* for eager scores, which families with a mask of their own never skip.

    Theirs has one row for all queries.
    Source: `get_extended_attention_mask` in transformers/modeling_utils.py of 4.18.0.
    """
    both_ways = masking_utils.bidirectional_mask_function

    def eager_mask(*args: Any, **kwargs: Any) -> Any:
        own = family_of(type(kwargs.get("config"))) in history.ALWAYS_MASKED
        if own and kwargs.get("mask_function") is both_ways:
            kwargs.update(q_length=1, allow_is_bidirectional_skip=False)
        return make(*args, **kwargs)

    return eager_mask


def _copying(attend: Callable[..., Any], release: Release) -> Callable[..., Any]:
    """Return *attend* on contiguous queries, keys and values, for families that called it so."""

    def copied(module: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        family = family_of(type(module))
        if release >= history.SHARED_SDPA_SINCE.get(family, history.SHARED_SDPA):
            query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
        return attend(module, query, key, value, *args, **kwargs)

    return copied


def _biased_attention(
    module: Any,
    query_BHLD: torch.Tensor,
    key_BHSD: torch.Tensor,
    value_BHSD: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *_: Any,
    dropout: float = 0.0,
    position_bias: torch.Tensor | None = None,
    **__: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention as T5 had it: biases added in place, softmax in fp32.

    Source: `T5Attention.forward` in transformers/models/t5/modeling_t5.py of 4.48.3.
    """
    scores = torch.matmul(query_BHLD, key_BHSD.transpose(3, 2))
    for bias in (position_bias, attention_mask):
        if bias is not None:
            scores += bias
    weights = functional.softmax(scores.float(), dim=-1).type_as(scores)
    weights = functional.dropout(weights, p=dropout, training=module.training)
    mixed = torch.matmul(weights, value_BHSD)
    return mixed.transpose(1, 2).contiguous(), weights
