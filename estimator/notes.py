"""What an estimate takes for granted, and what it does not know.

    codes: closed lists, used as metric labels too

An unknown is a value with a reason, never a zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AssumptionCode(StrEnum):
    """Why a value was taken that the spec does not state."""

    FRAMEWORK_VERSION = "framework-version"
    DEFAULT = "default"
    MODEL_DEFAULT = "model-default"
    KERNEL_WORKSPACE = "kernel-workspace"
    ATTENTION_BACKEND = "attention-backend"
    CONTEXT = "context"
    LIBRARIES = "libraries"
    ALLOCATOR = "allocator"
    COMPILE = "compile"
    LENGTH = "length"


class UnknownCode(StrEnum):
    """What the estimator could not find out or does not model."""

    DEVICE = "device"
    MODEL = "model"
    MODEL_CONFIG = "model-config"
    TASK = "task"
    FRAMEWORK = "framework"
    OPTIMIZER = "optimizer"
    PARALLELISM = "parallelism"
    ADAPTER = "adapter"
    QUANTIZATION = "quantization"
    PRECISION = "precision"
    OBJECTIVE = "objective"
    OPERATOR = "operator"
    KERNEL = "kernel"
    CONTEXT = "context"
    ALLOCATOR = "allocator"
    INPUT = "input"
    FEATURE = "feature"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A value taken for granted: *path* in the spec, the *value* used, the *reason*."""

    code: AssumptionCode
    path: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Something that moves the figure and is not modelled or not known."""

    code: UnknownCode
    path: str
    reason: str
