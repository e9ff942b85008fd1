"""The closed sets of words a JobSpec may use, and the bounds of its numbers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Part(BaseModel):
    """Base of every part of a JobSpec: frozen, camelCase, unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, use_attribute_docstrings=True
    )


Count = Annotated[int, Field(strict=True, ge=1, le=1 << 20)]
"""At least one, at most 1,048,576."""
Amount = Annotated[int, Field(strict=True, ge=0, le=1 << 20)]
"""Zero or more, at most 1,048,576."""
Length = Annotated[int, Field(strict=True, ge=1, le=1 << 24)]
"""A number of tokens or frames, at most 16,777,216."""
Elements = Annotated[int, Field(strict=True, ge=0, le=1 << 40)]
"""A number of elements, at most 2^40."""
NBytes = Annotated[int, Field(strict=True, ge=0, le=1 << 44)]
"""Bytes, at most 16 TiB."""
Flag = Annotated[bool, Field(strict=True)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Ratio = Annotated[float, Field(ge=0.0, le=1e6)]
Name = Annotated[str, Field(min_length=1, max_length=512)]
Dotted = Annotated[
    str, Field(max_length=16, pattern=r"^[0-9]{1,2}\.[0-9]{1,2}(\.[0-9]{1,3}){0,2}$")
]
"""A library's version in numbers: `9.26.0`."""
Word = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.+-]+$")]
"""One lower-case word of an open list, checked by the frontend that has to model it."""


class Framework(StrEnum):
    PYTORCH = "pytorch"
    TENSORFLOW = "tensorflow"
    MXNET = "mxnet"
    JAX = "jax"


class JobPhase(StrEnum):
    TRAIN = "train"
    INFER = "infer"


class Objective(StrEnum):
    SUPERVISED = "supervised"
    SFT = "sft"
    DPO = "dpo"
    ORPO = "orpo"
    KTO = "kto"
    GRPO = "grpo"
    PPO = "ppo"
    REWARD = "reward"
    DISTILL = "distill"


class ModelSource(StrEnum):
    TORCHVISION = "torchvision"
    TIMM = "timm"
    HUGGINGFACE = "huggingface"
    DIFFUSERS = "diffusers"
    KERAS = "keras"
    MXNET = "mxnet"
    ULTRALYTICS = "ultralytics"
    FILE = "file"
    LAYERS = "layers"
    TRACE = "trace"


class Task(StrEnum):
    CAUSAL_LM = "causal-lm"
    MASKED_LM = "masked-lm"
    SEQ2SEQ_LM = "seq2seq-lm"
    SEQUENCE_CLASSIFICATION = "sequence-classification"
    TOKEN_CLASSIFICATION = "token-classification"
    QUESTION_ANSWERING = "question-answering"
    IMAGE_CLASSIFICATION = "image-classification"
    OBJECT_DETECTION = "object-detection"
    SEMANTIC_SEGMENTATION = "semantic-segmentation"
    TEXT_TO_IMAGE = "text-to-image"
    IMAGE_TEXT_TO_TEXT = "image-text-to-text"
    SPEECH_RECOGNITION = "speech-recognition"
    ZERO_SHOT_IMAGE_CLASSIFICATION = "zero-shot-image-classification"
    MASK_GENERATION = "mask-generation"
    VIDEO_CLASSIFICATION = "video-classification"
    PRE_TRAINING = "pre-training"
    FEATURE_EXTRACTION = "feature-extraction"
    REGRESSION = "regression"


class Attention(StrEnum):
    EAGER = "eager"
    SDPA = "sdpa"
    FLASH_ATTENTION_2 = "flash_attention_2"
    FLEX = "flex"


class Precision(StrEnum):
    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    AMP_BF16 = "amp-bf16"
    AMP_FP16 = "amp-fp16"


class DType(StrEnum):
    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"


class Padding(StrEnum):
    FIXED = "fixed"
    LONGEST = "longest"


class CheckpointMode(StrEnum):
    NONE = "none"
    FULL = "full"
    SELECTIVE = "selective"


class ZeroGradPosition(StrEnum):
    BEFORE_FORWARD = "before-forward"
    AFTER_STEP = "after-step"


class LossKind(StrEnum):
    DEFAULT = "default"
    FUSED = "fused"
    CHUNKED = "chunked"


class KernelSet(StrEnum):
    DEFAULT = "default"
    LIGER = "liger"


class QuantizationScheme(StrEnum):
    NF4 = "nf4"
    FP4 = "fp4"
    INT8 = "int8"
    GPTQ = "gptq"
    AWQ = "awq"


class QuantizationPrepare(StrEnum):
    NONE = "none"
    KBIT = "kbit"
    CAST_BACK = "castBack"


class Strategy(StrEnum):
    NONE = "none"
    DDP = "ddp"
    FSDP = "fsdp"
    ZERO1 = "zero1"
    ZERO2 = "zero2"
    ZERO3 = "zero3"
    DP = "dp"
    MIRRORED = "mirrored"


class Implementation(StrEnum):
    FSDP1 = "fsdp1"
    FSDP2 = "fsdp2"
    DEEPSPEED = "deepspeed"
    MEGATRON = "megatron"
    HOROVOD = "horovod"


class Schedule(StrEnum):
    ONE_F_ONE_B = "1f1b"
    GPIPE = "gpipe"
    INTERLEAVED = "interleaved"


class Wrap(StrEnum):
    LAYER = "layer"
    LAYER_AND_ENDS = "layerAndEnds"
    SIZE = "size"


class Offload(StrEnum):
    NONE = "none"
    OPTIMIZER = "optimizer"
    PARAMETERS = "parameters"


class DeviceMap(StrEnum):
    NONE = "none"
    AUTO = "auto"


class Interconnect(StrEnum):
    NVLINK = "nvlink"
    PCIE = "pcie"


class MemoryFormat(StrEnum):
    CONTIGUOUS = "contiguous"
    CHANNELS_LAST = "channels_last"
