"""Settings of a job that change what library calls take.

JobSpec, Traits, version -> Calls
"""

from __future__ import annotations

import re

from estimator.frontends.notebook import Notebook
from estimator.frontends.tensorflow.convolutions import Calls
from estimator.notes import UnknownCode
from estimator.spec import JobSpec
from estimator.traits import Traits
from estimator.units import MIB

LIMIT = "TF_CUDNN_WORKSPACE_LIMIT_IN_MB"
LIMITS = (((0, 0), 4096 * MIB), ((2, 10), 8192 * MIB))
"""First release, and what a convolution's scratch memory may be if the job does not say.

Source: tensorflow/tensorflow#56055, which doubled it ("Increase the default workspace limit for
Cudnn Convolution"; under review in June 2022, so after 2.9 was cut), and
tensorflow/core/kernels/conv_ops_gpu.cc (`GetDnnWorkspaceLimitOrDefault`). Not modelled: 1 GiB for
gradients of inputs where a release before it was told to use cuDNN's frontend."""
AUTOTUNE = "TF_CUDNN_USE_AUTOTUNE"
DETERMINISTIC = ("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC")
NO_TF32 = "NVIDIA_TF32_OVERRIDE"
TF32_SINCE = (2, 4)
"""First TensorFlow that computes in TF32 by default."""
NEWEST = (99, 0)
SET = frozenset({"1", "true"})


def calls_of(spec: JobSpec, traits: Traits, version: str, notebook: Notebook) -> Calls:
    """Return how the job's convolutions are called on cards with *traits*."""
    env = spec.runtime.env
    return Calls(
        tensor_cores_for_fp32=traits.native_bf16
        and env.get(NO_TF32) != "0"
        and version_numbers(version) >= TF32_SINCE,
        limit=_limit(env.get(LIMIT), version_numbers(version), notebook),
        autotune=env.get(AUTOTUNE, "1").lower() in SET,
        deterministic=spec.runtime.cudnn_deterministic
        or any(env.get(name, "").lower() in SET for name in DETERMINISTIC),
    )


def version_numbers(version: str) -> tuple[int, int]:
    """Return major and minor of *version*; what cannot be read is the newest."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else NEWEST


def _limit(text: str | None, release: tuple[int, int], notebook: Notebook) -> int:
    default = next(limit for since, limit in reversed(LIMITS) if since <= release)
    if text is None:
        return default
    if not text.isdigit():
        notebook.unknown(
            UnknownCode.KERNEL,
            f"runtime.env.{LIMIT}",
            f"'{text:.40}' is no number; {default // MIB} is used",
        )
        return default
    return int(text) * MIB
