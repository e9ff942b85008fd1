"""Which parts of a spec this frontend models: the rest is an error.

JobSpec -> (nothing) | UnsupportedJobError
"""

from __future__ import annotations

from estimator.errors import UnsupportedJobError
from estimator.notes import UnknownCode
from estimator.spec import CheckpointMode, Framework, JobPhase, JobSpec, ModelSource, Strategy
from estimator.spec.vocabulary import (
    DeviceMap,
    KernelSet,
    LossKind,
    MemoryFormat,
    Objective,
    Offload,
    Precision,
)

SOURCES = (ModelSource.MXNET, ModelSource.FILE)
STRATEGIES = (Strategy.NONE, Strategy.DP, Strategy.DDP)
PRECISIONS = (Precision.FP32, Precision.TF32, Precision.FP16)


def check_support(spec: JobSpec) -> None:
    """Refuse what would make the figure meaningless.

    Raises:
        UnsupportedJobError: for the first part of the spec that is not modelled.
    """
    for is_refused, code, path, reason in (*_of_job(spec), *_of_training(spec)):
        if is_refused:
            raise UnsupportedJobError(f"{path}: {reason}", code=code, path=path)


_Check = tuple[bool, UnknownCode, str, str]


def _of_job(spec: JobSpec) -> tuple[_Check, ...]:
    model, parallel = spec.model, spec.parallelism
    degrees = (
        parallel.tensor_parallel,
        parallel.pipeline_parallel,
        parallel.context_parallel,
        parallel.expert_parallel,
    )
    feature, shape = UnknownCode.FEATURE, UnknownCode.PARALLELISM
    return (
        (
            spec.framework is not Framework.MXNET,
            UnknownCode.FRAMEWORK,
            "framework",
            f"'{spec.framework}' is not planned by the MXNet frontend",
        ),
        (
            model.source not in SOURCES,
            UnknownCode.MODEL,
            "model.source",
            f"'{model.source}' models are not MXNet's; known: {', '.join(SOURCES)}",
        ),
        (
            bool(model.companions),
            UnknownCode.MODEL,
            "model.companions",
            "models beside the trained one are not modelled",
        ),
        (
            spec.objective is not Objective.SUPERVISED,
            UnknownCode.OBJECTIVE,
            "objective",
            f"'{spec.objective}' is not modelled for MXNet",
        ),
        (spec.adapter is not None, UnknownCode.ADAPTER, "adapter", "not modelled for MXNet"),
        (
            spec.quantization is not None,
            UnknownCode.QUANTIZATION,
            "quantization",
            "not modelled for MXNet",
        ),
        (
            parallel.strategy not in STRATEGIES,
            shape,
            "parallelism.strategy",
            f"'{parallel.strategy}' is not modelled for MXNet; known: {', '.join(STRATEGIES)}",
        ),
        (
            max(degrees) > 1,
            shape,
            "parallelism",
            "MXNet's layers are not spread over cards; only data parallelism is modelled",
        ),
        (
            parallel.offload is not Offload.NONE or parallel.device_map is not DeviceMap.NONE,
            shape,
            "parallelism",
            "offloading is not modelled for MXNet",
        ),
        (
            spec.input.max_new_tokens > 0,
            feature,
            "input.maxNewTokens",
            "generation is not modelled for MXNet",
        ),
        (
            spec.runtime.memory_format is not MemoryFormat.CONTIGUOUS,
            feature,
            "runtime.memoryFormat",
            "an MXNet symbol says its own layout",
        ),
    )


def _of_training(spec: JobSpec) -> tuple[_Check, ...]:
    training, feature = spec.training, UnknownCode.FEATURE
    is_trained = spec.phase is JobPhase.TRAIN
    refused = {
        "training.gradientCheckpointing": (
            training.gradient_checkpointing.mode is not CheckpointMode.NONE
        ),
        "training.float8": training.float8 is not None,
        "training.activationOffload": training.activation_offload,
        "training.ema": training.ema,
        "training.clipGradNorm": training.clip_grad_norm,
        "training.loss": training.loss is not LossKind.DEFAULT,
        "training.kernels": training.kernels is not KernelSet.DEFAULT,
        "training.evaluation": training.evaluation is not None,
        "training.optimizer.inBackward": training.optimizer.in_backward,
        "training.compile.cudaGraphs": training.compile.cuda_graphs,
    }
    return (
        (
            training.precision not in PRECISIONS,
            UnknownCode.PRECISION,
            "training.precision",
            f"'{training.precision}' is not modelled for MXNet; known: {', '.join(PRECISIONS)}",
        ),
        *(
            (is_refused and is_trained, feature, path, "not modelled for MXNet")
            for path, is_refused in refused.items()
        ),
    )
