"""Which transformers `xla_transformers.py` compiles.

    name -> Transformer

None of them is a model that a job can name; sizes are small so that a compile takes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial

PATCH = 16
"""Pixels along a side of ViT's patches."""
CLASSES = 1000
"""What ViT tells apart."""


class Kind(StrEnum):
    """Which architecture."""

    GPT = "gpt"
    LLAMA = "llama"
    BERT = "bert"
    VIT = "vit"
    T5 = "t5"
    """An encoder and a decoder, with the layers of GPT."""


class Precision(StrEnum):
    """What weights are kept and computed in; Adam's moments are always 32 bits."""

    FP32 = "fp32"
    BF16 = "bf16"
    MIXED = "mixed"
    """Kept in 32 bits, computed in bf16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A model and how it is trained."""

    kind: Kind
    precision: Precision = Precision.FP32
    layers: int = 2
    width: int = 512
    heads: int = 8
    key_heads: int = 8
    hidden: int = 2048
    tokens: int = 512
    batch: int = 8
    vocabulary: int = 16_000
    dropout: float = 0.0
    is_sgd: bool = False
    """Plain SGD, else Adam."""
    is_scanned: bool = False
    """Layers are a `lax.scan`."""
    is_checkpointed: bool = False
    """Every layer is computed again on the way back (`jax.checkpoint`)."""

    @property
    def kept_in(self) -> str:
        """Return the dtype of the weights."""
        return "bfloat16" if self.precision is Precision.BF16 else "float32"

    @property
    def computed_in(self) -> str:
        """Return the dtype of the activations."""
        return "float32" if self.precision is Precision.FP32 else "bfloat16"


def _table() -> dict[str, Transformer]:
    bf16, mixed = Precision.BF16, Precision.MIXED
    gpt = partial(Transformer, kind=Kind.GPT)
    llama = partial(
        Transformer, kind=Kind.LLAMA, key_heads=2, hidden=1408, vocabulary=32_000, precision=bf16
    )
    bert = partial(Transformer, kind=Kind.BERT)
    vit = partial(Transformer, kind=Kind.VIT, tokens=196, batch=32)
    t5 = partial(Transformer, kind=Kind.T5, tokens=256)
    return {
        "gpt-4-fp32": gpt(layers=4),
        "gpt-4-bf16": gpt(layers=4, precision=bf16),
        "gpt-2-mixed": gpt(precision=mixed),
        "gpt-2-dropout": gpt(dropout=0.1),
        "gpt-2-dropout-mixed": gpt(dropout=0.1, precision=mixed),
        "gpt-2-sgd-bf16": gpt(precision=bf16, is_sgd=True, vocabulary=50_000),
        "llama-2-fp32": llama(
            precision=Precision.FP32, key_heads=4, vocabulary=16_000, tokens=128, batch=32
        ),
        "llama-2-bf16": llama(),
        "llama-2-mixed": llama(precision=mixed),
        "llama-2-long-bf16": llama(tokens=2048, batch=2),
        "bert-2-fp32": bert(),
        "bert-2-bf16": bert(precision=bf16),
        "bert-2-dropout": bert(dropout=0.1, tokens=128, batch=32),
        "vit-2-fp32": vit(),
        "vit-2-mixed": vit(precision=mixed),
        "t5-2-fp32": t5(),
        "t5-2-bf16": t5(precision=bf16),
        "gpt-6-scan": gpt(layers=6, is_scanned=True),
        "gpt-4-checkpoint": gpt(layers=4, is_checkpointed=True),
        "gpt-6-scan-checkpoint-mixed": gpt(
            layers=6, is_scanned=True, is_checkpointed=True, precision=mixed
        ),
    }


TRANSFORMERS = _table()
"""Name (kind, layers, what is special) -> transformer."""
