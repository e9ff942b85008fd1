"""Which parts of a spec this frontend models: the rest is an error or a named unknown.

    JobSpec -> (nothing) | UnsupportedJobError, unknowns

Nothing that moves memory is ignored silently.
"""

from __future__ import annotations

import re

from torch import nn

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.objectives import MODELLED
from estimator.frontends.pytorch.optimizers import require_known
from estimator.notes import UnknownCode
from estimator.spec import Framework, JobPhase, JobSpec, ModelSource, Strategy
from estimator.spec.vocabulary import DeviceMap, Offload, Padding

ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
SHAPED = (ModelSource.LAYERS, ModelSource.FILE, ModelSource.KERAS)
"""Sources whose input is any tensor."""
STRATEGIES = (Strategy.NONE, Strategy.DDP)


def check_support(spec: JobSpec, notebook: Notebook) -> None:
    """Refuse what would make the figure meaningless, and note what only blurs it.

    Raises:
        SpecError: for keys of the model that its source does not take.
        UnsupportedJobError: for the first part of the spec that is not modelled.
    """
    _check_keys(spec)
    _refuse(spec)
    if spec.phase is JobPhase.TRAIN:
        require_known(spec.training.optimizer)
    _note(spec, notebook)


def note_kernels(model: nn.Module, notebook: Notebook) -> None:
    """Name the layers whose kernels on a card are not those that are traced."""
    if any(isinstance(module, nn.RNNBase) for module in model.modules()):
        notebook.unknown(
            UnknownCode.KERNEL,
            "model",
            "what cuDNN keeps of recurrent layers for backward, and its workspace, are assumed",
        )


def _check_keys(spec: JobSpec) -> None:
    """Refuse keys of the model and its input that this source has no use for."""
    source = spec.model.source
    zoo = source in (ModelSource.TORCHVISION, ModelSource.TIMM)
    wrong = (
        ("model.config", bool(spec.model.config) and zoo),
        ("model.options", bool(spec.model.options) and not zoo),
        ("model.attention", spec.model.attention is not None and source is ModelSource.TORCHVISION),
        ("input.shape", spec.input.shape is not None and source not in SHAPED),
    )
    problems = [
        Problem(path=path, message=f"not a key of '{source}' models")
        for path, is_wrong in wrong
        if is_wrong
    ]
    if problems:
        raise SpecError(problems)


def _refuse(spec: JobSpec) -> None:
    parallel = spec.parallelism
    if spec.objective not in MODELLED:
        raise UnsupportedJobError(
            f"objective: '{spec.objective}' is not modelled: what generates its texts, and how "
            f"much of the card that takes, is not known; known: {', '.join(MODELLED)}",
            code=UnknownCode.OBJECTIVE,
            path="objective",
            hint="estimate the trained part as objective: sft, and give what the engine that "
            "generates takes as runtime.extraBytes",
        )
    environment = " ".join(spec.runtime.env.get(name, "") for name in ALLOCATOR_VARIABLES)
    refused = (
        (
            spec.framework is not Framework.PYTORCH,
            UnknownCode.FRAMEWORK,
            "framework",
            f"'{spec.framework}' is not traced by the PyTorch frontend",
        ),
        (
            parallel.strategy not in STRATEGIES,
            UnknownCode.PARALLELISM,
            "parallelism.strategy",
            f"'{parallel.strategy}' is not modelled yet; known: {', '.join(STRATEGIES)}",
        ),
        (
            max(
                parallel.tensor_parallel,
                parallel.pipeline_parallel,
                parallel.context_parallel,
                parallel.expert_parallel,
            )
            > 1,
            UnknownCode.PARALLELISM,
            "parallelism",
            "tensor, pipeline, context and expert parallelism are not modelled yet",
        ),
        (
            parallel.offload is not Offload.NONE or parallel.device_map is not DeviceMap.NONE,
            UnknownCode.PARALLELISM,
            "parallelism",
            "offload and device maps are not modelled yet",
        ),
        (
            re.search(r"backend\s*:\s*cudaMallocAsync", environment) is not None,
            UnknownCode.ALLOCATOR,
            "runtime.env",
            "the cudaMallocAsync backend is not modelled",
        ),
    )
    for is_refused, code, path, message in refused:
        if is_refused:
            raise UnsupportedJobError(f"{path}: {message}", code=code, path=path)


def _note(spec: JobSpec, notebook: Notebook) -> None:
    training = spec.training
    feature = UnknownCode.FEATURE
    noted = (
        (
            training.compile.enabled and not training.compile.records_graphs,
            "training.compile",
            "traced as eager, the loss of a causal language model as compiled; fusing needs less",
        ),
        (
            training.label_smoothing > 0 and spec.model.source is ModelSource.HUGGINGFACE,
            "training.labelSmoothing",
            "a smoothed loss on a transformers model is traced as the plain one",
        ),
        (
            spec.model.attention is not None and spec.model.source is ModelSource.TIMM,
            "model.attention",
            "timm chooses its attention itself",
        ),
        (
            spec.input.images_per_sample is not None,
            "input.imagesPerSample",
            "several images a sample are not traced",
        ),
        (
            spec.input.padding is Padding.LONGEST,
            "input.padding",
            "traced at the longest length",
        ),
        (
            training.save.full_state_dict and spec.parallelism.strategy is not Strategy.NONE,
            "training.save",
            "gathering the state to save it is not traced",
        ),
    )
    for is_noted, path, reason in noted:
        if is_noted:
            notebook.unknown(feature, path, reason)
