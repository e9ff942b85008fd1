"""JobSpec, the contract for what is estimated. `parse_spec` reads one."""

from estimator.spec.jobspec import API_VERSION, JobSpec, digest_of, parse_spec
from estimator.spec.model import Adapter, Companion, Input, Model, Quantization
from estimator.spec.training import Optimizer, Parallelism, Runtime, Training
from estimator.spec.vocabulary import (
    CheckpointMode,
    Framework,
    JobPhase,
    ModelSource,
    Precision,
    Strategy,
    Task,
)

__all__ = [
    "API_VERSION",
    "Adapter",
    "CheckpointMode",
    "Companion",
    "Framework",
    "Input",
    "JobPhase",
    "JobSpec",
    "Model",
    "ModelSource",
    "Optimizer",
    "Parallelism",
    "Precision",
    "Quantization",
    "Runtime",
    "Strategy",
    "Task",
    "Training",
    "digest_of",
    "parse_spec",
]
