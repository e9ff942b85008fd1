"""The loss of a language model without all its logits at once.

    hidden states, head, labels -> loss

Three ways, told apart by when they came:

* `fused` (Liger's `LigerFusedLinearCrossEntropyLoss`, cut cross entropy): logits of a few tokens
  at a time; gradients of hidden states and head are made in the forward pass.
* `chunked` since torch 2.4 (torchtune's `CEWithChunkedOutputLoss`, 8 chunks; TRL's `chunked_nll`
  of 256 tokens): logits of a chunk in fp32 for the loss; its log-softmax lives until backward.
* `chunked` before (litgpt's `chunked_cross_entropy`, `lm_head_chunk_size` 128): 128 tokens of each
  sample at a time; Fabric makes the logits fp32 once all are there.

Source: linkedin/Liger-Kernel@v0.5.2 `src/liger_kernel/ops/fused_linear_cross_entropy.py` (size of
its chunks, in-place gradients); pytorch/torchtune@v0.4.0 `torchtune/modules/loss/ce_chunked_output_
loss.py`; Lightning-AI/litgpt@v0.1.0 `litgpt/utils.py`. When torchtune's came (August 2024, the
time of torch 2.4) decides between the last two: assumed where a job does not say.
Not modelled: masked tokens that TRL drops first, cut cross entropy's own filter of small gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.lean.compiled import CompiledLoss
from estimator.frontends.pytorch.versions import Version
from estimator.notes import AssumptionCode
from estimator.spec import Training
from estimator.spec.vocabulary import LossKind

TORCHTUNE_SINCE: Version = (2, 4)
NUM_CHUNKS = 8
LITGPT_TOKENS = 128

ChunkLoss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Loss = Callable[[torch.Tensor, nn.Module, torch.Tensor], torch.Tensor]


def with_lean_loss(model: Any, training: Training, notebook: Notebook, version: Version) -> bool:
    """Give *model* a loss that sees hidden states; return whether it has such a head.

    The head becomes the identity, so that outputs carry hidden states where logits were.
    """
    head, kind = _head(model), training.loss
    if head is None:
        return False
    owner, name, module = head
    if kind is LossKind.CHUNKED:
        _without_cache(model, training, notebook)
    is_compiled = training.compile.enabled
    loss = fused if kind is LossKind.FUSED else _chunked(notebook, version, is_compiled)
    # The head keeps its weights on the card: it moves to where the loss finds it.
    setattr(owner, name, Headless(module))

    def of_hidden(logits: Any, labels: Any, *_: Any, **__: Any) -> torch.Tensor:
        shifted = functional.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()
        return loss(logits, module, shifted.view(-1))

    model.loss_function = of_hidden
    return True


def _without_cache(model: Any, training: Training, notebook: Notebook) -> None:
    """Turn the KV cache off, unless the job asks for one.

    Trainers with a chunked loss make none in training: litgpt's `GPT.forward` has none without
    positions, torchtune's `CausalSelfAttention` none unless set up, TRL says `use_cache=False`.
    """
    if "use_cache" not in training.model_fields_set:
        model.config.use_cache = False
        notebook.assume(
            AssumptionCode.DEFAULT,
            "training.useCache",
            "false",
            "absent: trainers with a chunked loss make no cache in training",
        )


class Headless(nn.Module):
    """Passes hidden states on; holds the head for whoever asks for its weights."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    @property
    def weight(self) -> Any:
        """The head's weight, which models tie."""
        return self.head.weight

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return *hidden* as it is."""
        return hidden


def _head(model: Any) -> tuple[nn.Module, str, nn.Module] | None:
    """Return who owns the output head, its name and itself, of a causal language model."""
    find = getattr(model, "get_output_embeddings", None)
    head = find() if callable(find) else None
    if not isinstance(head, nn.Linear) or not type(model).__name__.endswith("ForCausalLM"):
        return None
    for path, module in model.named_modules():
        if module is head:
            owner, _, name = path.rpartition(".")
            return model.get_submodule(owner), name, head
    return None


def _chunked(notebook: Notebook, version: Version, is_compiled: bool) -> Loss:
    is_new = version >= TORCHTUNE_SINCE
    name = f"{NUM_CHUNKS} chunks in fp32" if is_new else f"{LITGPT_TOKENS} tokens at a time"
    notebook.assume(
        AssumptionCode.DEFAULT,
        "training.loss",
        name,
        "chunked: as the trainers of this PyTorch's time do it (torchtune, litgpt before)",
    )
    if is_new and is_compiled:
        return partial(in_chunks, one=CompiledLoss.apply)
    return in_chunks if is_new else by_tokens


def in_fp32(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the summed loss of one chunk, operator by operator."""
    return functional.cross_entropy(logits.float(), labels, reduction="sum")


def in_chunks(
    hidden: torch.Tensor, head: nn.Module, labels: torch.Tensor, *, one: ChunkLoss = in_fp32
) -> torch.Tensor:
    """Return the loss over `NUM_CHUNKS` chunks, *one* after the other.

    torchtune compiles the loss of a chunk (v0.3.0 `torchtune/training/_compile.py`,
    `compile_loss`): then its logits stay in their own dtype until backward.
    """
    flat = hidden.reshape(-1, hidden.shape[-1])
    logits = [head(part) for part in flat.chunk(NUM_CHUNKS)]
    total: Any = 0.0
    for part, targets in zip(logits, labels.chunk(NUM_CHUNKS), strict=True):
        total = total + one(part, targets)
    return total / labels.numel()  # type: ignore[no-any-return]


def by_tokens(hidden: torch.Tensor, head: nn.Module, labels: torch.Tensor) -> torch.Tensor:
    """Return the loss over chunks of `LITGPT_TOKENS` of each sample.

    Lightning Fabric makes every output fp32 once all of them are there (lightning 2.1.0
    `fabric/wrappers.py`). Not modelled: the loop's variable, which keeps them for another pass.
    """
    made = [head(part) for part in torch.split(hidden, LITGPT_TOKENS, dim=1)]
    parts = [part.float() for part in made]
    del made
    targets = torch.split(labels.view(hidden.shape[:2]), LITGPT_TOKENS, dim=1)
    losses = [
        functional.cross_entropy(
            part.reshape(-1, part.shape[-1]), each.reshape(-1), reduction="none"
        )
        for part, each in zip(parts, targets, strict=True)
    ]
    return torch.cat(losses).mean()


def fused(hidden: torch.Tensor, head: nn.Module, _: torch.Tensor) -> torch.Tensor:
    """Return the loss whose gradients are made on the way."""
    flat = hidden.reshape(-1, hidden.shape[-1])
    loss: torch.Tensor = FusedHead.apply(flat, head.weight)
    return loss


class FusedHead(torch.autograd.Function):
    """Head and cross entropy in one, chunk by chunk."""

    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Make losses and gradients of each chunk; only the gradients stay."""
        of_hidden = torch.zeros_like(hidden) if ctx.needs_input_grad[0] else None
        of_weight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
        losses = torch.zeros(hidden.shape[0], dtype=torch.float32, device=hidden.device)
        for start, end in _ranges(hidden.shape[0], hidden.shape[1], weight.shape[0]):
            part = hidden[start:end]
            logits = part @ weight.t().to(part.dtype)
            if of_hidden is not None:
                of_hidden[start:end] = logits @ weight.to(part.dtype)
            if of_weight is not None:
                torch.addmm(
                    of_weight, logits.t().to(weight.dtype), part.to(weight.dtype), out=of_weight
                )
        ctx.save_for_backward(
            *(each.detach() for each in (of_hidden, of_weight) if each is not None)
        )
        ctx.has = (of_hidden is not None, of_weight is not None)
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Return the gradients, scaled in place."""
        kept = list(ctx.saved_tensors)
        found = [kept.pop(0) if has else None for has in ctx.has]
        for each in found:
            if each is not None:
                each.mul_(gradient)
        return found[0], found[1]


def _ranges(tokens: int, width: int, vocabulary: int) -> Iterator[tuple[int, int]]:
    """Yield the chunks: so many that a chunk's logits are about as large as the hidden states."""
    factor = -(-vocabulary // width)
    size = 1 << max(0, (-(-tokens // factor) - 1).bit_length())
    for start in range(0, tokens, size):
        yield start, min(tokens, start + size)
