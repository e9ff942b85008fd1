"""What a JobSpec's precision means in dtypes.

Precision -> torch.dtype
"""

from __future__ import annotations

import torch

from estimator.spec import Precision
from estimator.spec.vocabulary import DType

WEIGHTS = {
    Precision.FP32: torch.float32,
    Precision.TF32: torch.float32,
    Precision.BF16: torch.bfloat16,
    Precision.FP16: torch.float16,
    Precision.AMP_BF16: torch.float32,
    Precision.AMP_FP16: torch.float32,
}
"""The dtype weights and floating inputs have."""

AUTOCAST = {Precision.AMP_BF16: torch.bfloat16, Precision.AMP_FP16: torch.float16}
"""The lower dtype of an autocast region; absent: no autocast."""

DTYPES = {DType.FP32: torch.float32, DType.BF16: torch.bfloat16, DType.FP16: torch.float16}


def name_of(dtype: torch.dtype) -> str:
    """Return `float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")
