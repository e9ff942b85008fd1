"""Build the model of a job on stand-ins, with its batches and its loss.

    JobSpec -> Built

Nothing of the user's is executed, no weights are loaded, no network is used.
"""

from __future__ import annotations

from collections.abc import Callable

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.diffusion import build_diffusers
from estimator.frontends.pytorch.build.file import build_file
from estimator.frontends.pytorch.build.huggingface import build_huggingface
from estimator.frontends.pytorch.build.job import Built
from estimator.frontends.pytorch.build.keras import build_keras
from estimator.frontends.pytorch.build.layers import build_layers
from estimator.frontends.pytorch.build.timm import build_timm
from estimator.frontends.pytorch.build.torchvision import build_torchvision
from estimator.notes import UnknownCode
from estimator.spec import JobSpec, ModelSource

BUILDERS: dict[ModelSource, Callable[[JobSpec, Notebook], Built]] = {
    ModelSource.TORCHVISION: build_torchvision,
    ModelSource.TIMM: build_timm,
    ModelSource.HUGGINGFACE: build_huggingface,
    ModelSource.DIFFUSERS: build_diffusers,
    ModelSource.LAYERS: build_layers,
    ModelSource.KERAS: build_keras,
    ModelSource.FILE: build_file,
}

HINTS: dict[ModelSource, str] = {
    ModelSource.TRACE: "`vramgate estimate` reads a Trace file from a path",
}
"""What to do with sources that this process does not open."""


def build_job(spec: JobSpec, notebook: Notebook) -> Built:
    """Return the model of *spec*, ready to be run.

    Raises:
        SpecError: if the spec names options or sizes the model does not take.
        UnsupportedJobError: if the model is not known or its source is not modelled.
    """
    builder = BUILDERS.get(spec.model.source)
    if builder is None:
        raise UnsupportedJobError(
            f"model.source: '{spec.model.source}' is not modelled for PyTorch; "
            f"known: {', '.join(BUILDERS)}",
            code=UnknownCode.MODEL,
            path="model.source",
            hint=HINTS.get(spec.model.source),
        )
    return builder(spec, notebook)
