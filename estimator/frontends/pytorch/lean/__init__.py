"""Losses and kernels that keep less than the library's own: chunked, fused, Liger.

Built, Training -> Built
"""

from __future__ import annotations

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Built
from estimator.frontends.pytorch.lean.compiled import with_compiled_parts
from estimator.frontends.pytorch.lean.liger import with_liger
from estimator.frontends.pytorch.lean.loss import with_lean_loss
from estimator.frontends.pytorch.versions import Version
from estimator.notes import UnknownCode
from estimator.spec import JobPhase, JobSpec
from estimator.spec.vocabulary import KernelSet, LossKind


def with_lean_parts(spec: JobSpec, built: Built, notebook: Notebook, version: Version) -> Built:
    """Return *built* with the loss and the kernels *spec* names; what has no such part is noted."""
    training = spec.training
    if training.kernels is KernelSet.LIGER and not with_liger(built.model):
        notebook.unknown(
            UnknownCode.FEATURE,
            "training.kernels",
            "this model has no layers that Liger replaces; traced with its own",
        )
    with_compiled_parts(spec, built.model, notebook, version)
    is_lean = training.loss is not LossKind.DEFAULT and spec.phase is JobPhase.TRAIN
    if is_lean and not with_lean_loss(built.model, training, notebook, version):
        notebook.unknown(
            UnknownCode.FEATURE,
            "training.loss",
            f"a {training.loss} loss needs less than the default one that was traced",
        )
    return built
