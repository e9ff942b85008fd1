"""The model of a JobSpec, what is fed to it, and what is attached to it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from estimator.spec.vocabulary import (
    Amount,
    Attention,
    Count,
    DType,
    Flag,
    Fraction,
    Length,
    ModelSource,
    Name,
    Padding,
    Part,
    Precision,
    QuantizationPrepare,
    QuantizationScheme,
    Ratio,
    Task,
    Word,
)


class Companion(Part):
    """A frozen model on the same card, such as a text encoder or a teacher."""

    source: ModelSource
    name: Name
    config: dict[str, Any] = Field(default_factory=dict)
    precision: Precision = Precision.FP32


class Model(Part):
    """Which architecture is trained."""

    source: ModelSource
    """The library that builds it, or the form it comes in."""
    name: Name
    """Zoo name, Hub id, or a path or URL for `file` and `trace`."""
    task: Task | None = None
    """The head. Absent: the usual head of the source or of the config's architecture."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Inline architecture: a Hub config.json, a Keras to_json(), or the keys of `layers`."""
    revision: Name | None = None
    attention: Attention | None = None
    """Absent: what the library picks."""
    num_labels: Count | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    """Constructor keywords of the zoo, checked against its signature."""
    companions: Annotated[tuple[Companion, ...], Field(max_length=16)] = ()


class Input(Part):
    """What one rank is fed in one micro-step. Shapes leave out the batch axis."""

    batch_size: Count
    """Micro-batch of one rank."""
    image_size: Annotated[tuple[Count, Count, Count], Field()] | None = None
    """C, H, W."""
    sequence_length: Length | None = None
    """Whole, before any context-parallel split; includes `maxNewTokens` when generating."""
    target_length: Length | None = None
    audio_frames: Length | None = None
    video_frames: Count | None = None
    images_per_sample: Count | None = None
    shape: Annotated[tuple[Length, ...], Field(max_length=8)] | None = None
    max_new_tokens: Amount = 0
    padding_mask: Flag = False
    padding: Padding = Padding.FIXED
    prefetch_batches: Annotated[int, Field(strict=True, ge=0, le=4096)] = 0


class Adapter(Part):
    """Parameter-efficient training: small trained weights on a frozen base."""

    type: Word
    rank: Annotated[int, Field(strict=True, ge=1, le=65536)] = 8
    alpha: Ratio | None = None
    dropout: Fraction = 0.0
    target_modules: Annotated[tuple[Name, ...], Field(max_length=256)] = ()
    trainable_modules: Annotated[tuple[Name, ...], Field(max_length=256)] = ()
    virtual_tokens: Amount = 0
    dtype: DType | None = None
    options: dict[str, Any] = Field(default_factory=dict)


class Quantization(Part):
    """Storage of a frozen base in fewer bits."""

    bits: Annotated[int, Field(strict=True, ge=2, le=8)]
    scheme: QuantizationScheme
    double_quant: Flag = False
    compute_dtype: DType = DType.BF16
    skip_modules: Annotated[tuple[Name, ...], Field(max_length=256)] = ()
    prepare: QuantizationPrepare = QuantizationPrepare.NONE
