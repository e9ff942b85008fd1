"""Which attention a transformers model is built with.

model.attention, release -> transformers' name of it
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build import older_transformers
from estimator.frontends.pytorch.build.releases import Release
from estimator.frontends.pytorch.versions import Version, parse_version
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec
from estimator.spec.vocabulary import Attention, LossKind

SDPA_NEEDS: Version = (2, 1)
"""First PyTorch whose fused attention transformers takes (`is_torch_sdpa_available`)."""


CHUNKED_SINCE: Version = (2, 4)
"""PyTorch of the time when trainers on transformers' models got chunked losses."""


def attention_of(spec: JobSpec, notebook: Notebook) -> str | None:
    """Return transformers' name of the attention to build with; None: its own default."""
    version = parse_version(spec.framework_version or "")
    match spec.model.attention:
        case Attention.EAGER:
            return "eager"
        case Attention.FLASH_ATTENTION_2:
            notebook.assume(
                AssumptionCode.ATTENTION_BACKEND,
                "model.attention",
                "flash",
                "the flash_attn package keeps what SDPA's flash kernel keeps",
            )
            return "sdpa"
        case Attention.FLEX:
            notebook.unknown(
                UnknownCode.FEATURE, "model.attention", "flex attention is traced as sdpa"
            )
            return "sdpa"
        case Attention.SDPA:
            return "sdpa"
        case None if _is_own_code(spec):
            notebook.assume(
                AssumptionCode.ATTENTION_BACKEND,
                "model.attention",
                "sdpa",
                "the trainers of this PyTorch's time with a chunked loss (litgpt) have models of "
                "their own, which call scaled_dot_product_attention",
            )
            return "sdpa"
        case None if version is not None and version < SDPA_NEEDS:
            return "eager"
        case None:
            return None


def attending_as(spec: JobSpec, release: Release) -> AbstractContextManager[None]:
    """Return the change that gives models the attention of *release*, if the spec states none."""
    if spec.model.attention is not None or _is_own_code(spec):
        return nullcontext()
    return older_transformers.built_as(release)


def _is_own_code(spec: JobSpec) -> bool:
    """Return whether the trainer's models are not those of transformers.

    No release of transformers that is as old as PyTorch 2.3 had a chunked loss, in its trainer or
    in TRL's. Source: Lightning-AI/litgpt@v0.1.0 `litgpt/model.py` (`scaled_dot_product_attention`).
    """
    version = parse_version(spec.framework_version or "")
    is_old = version is not None and version < CHUNKED_SINCE
    return is_old and spec.training.loss is LossKind.CHUNKED
