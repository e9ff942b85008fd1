"""Which parts of a spec this frontend models: the rest is an error or a named unknown.

JobSpec -> (nothing) | UnsupportedJobError, unknowns
"""

from __future__ import annotations

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.notes import UnknownCode
from estimator.spec import CheckpointMode, JobSpec, Strategy
from estimator.spec.vocabulary import Objective, Offload

STRATEGIES = (Strategy.NONE, Strategy.MIRRORED, Strategy.DDP)
"""`ddp` is Horovod: a process for each card."""


def check_support(spec: JobSpec, notebook: Notebook) -> None:
    """Refuse what would make the figure meaningless, and note what only blurs it.

    Raises:
        UnsupportedJobError: for the first part of the spec that is not modelled.
    """
    training, parallel = spec.training, spec.parallelism
    if spec.objective is not Objective.SUPERVISED:
        raise _unsupported(UnknownCode.OBJECTIVE, "objective", spec.objective)
    if spec.adapter is not None:
        raise _unsupported(UnknownCode.ADAPTER, "adapter", spec.adapter.type)
    if spec.quantization is not None:
        raise _unsupported(UnknownCode.QUANTIZATION, "quantization", spec.quantization.scheme)
    if parallel.strategy not in STRATEGIES:
        raise _unsupported(UnknownCode.PARALLELISM, "parallelism.strategy", parallel.strategy)
    for key, degree in (
        ("tensorParallel", parallel.tensor_parallel),
        ("pipelineParallel", parallel.pipeline_parallel),
        ("contextParallel", parallel.context_parallel),
    ):
        if degree > 1:
            raise _unsupported(UnknownCode.PARALLELISM, f"parallelism.{key}", degree)
    if parallel.offload is not Offload.NONE:
        raise _unsupported(UnknownCode.PARALLELISM, "parallelism.offload", parallel.offload)
    if training.gradient_checkpointing.mode is not CheckpointMode.NONE:
        path = "training.gradientCheckpointing"
        raise _unsupported(UnknownCode.FEATURE, path, training.gradient_checkpointing.mode)
    if spec.model.companions:
        raise _unsupported(UnknownCode.FEATURE, "model.companions", len(spec.model.companions))
    if spec.input.max_new_tokens:
        raise _unsupported(UnknownCode.FEATURE, "input.maxNewTokens", spec.input.max_new_tokens)
    if training.float8 is not None or training.master_weights:
        raise _unsupported(UnknownCode.PRECISION, "training", "float8 or masterWeights")
    if training.save.full_state_dict:
        notebook.unknown(
            UnknownCode.FEATURE, "training.save", "what saving takes on the card is not modelled"
        )


def _unsupported(code: UnknownCode, path: str, value: object) -> UnsupportedJobError:
    return UnsupportedJobError(
        f"{path}: '{value}' is not modelled for tensorflow", code=code, path=path
    )
