"""Which parts of a spec this frontend models: the rest is an error or a named unknown.

    JobSpec -> (nothing) | UnsupportedJobError, unknowns

Nothing that moves memory is ignored silently.
"""

from __future__ import annotations

import jax

from estimator.errors import UnsupportedJobError
from estimator.frontends.jax.mesh import Layout
from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import CheckpointMode, Framework, JobSpec, ModelSource
from estimator.spec.vocabulary import DeviceMap, Objective, Offload, Padding

SOURCES = (ModelSource.KERAS, ModelSource.FILE)


def check_support(spec: JobSpec, notebook: Notebook) -> None:
    """Refuse what would make the figure meaningless, and note what only blurs it.

    Raises:
        UnsupportedJobError: for the first part of the spec that is not modelled.
    """
    training, parallel = spec.training, spec.parallelism
    refused = (
        (
            spec.framework is not Framework.JAX,
            UnknownCode.FRAMEWORK,
            "framework",
            f"'{spec.framework}' is not traced by the JAX frontend",
        ),
        (
            spec.model.source not in SOURCES,
            UnknownCode.MODEL,
            "model.source",
            f"'{spec.model.source}' is not modelled for JAX; known: {', '.join(SOURCES)}",
        ),
        (
            spec.objective is not Objective.SUPERVISED,
            UnknownCode.OBJECTIVE,
            "objective",
            f"'{spec.objective}' is not modelled for JAX",
        ),
        (spec.adapter is not None, UnknownCode.ADAPTER, "adapter", "not modelled for JAX"),
        (
            spec.quantization is not None,
            UnknownCode.QUANTIZATION,
            "quantization",
            "not modelled for JAX",
        ),
        (
            bool(spec.model.companions),
            UnknownCode.FEATURE,
            "model.companions",
            "frozen models beside the trained one are not modelled for JAX",
        ),
        (
            training.float8 is not None,
            UnknownCode.PRECISION,
            "training.float8",
            "not modelled for JAX",
        ),
        (
            training.activation_offload
            or parallel.offload is not Offload.NONE
            or parallel.device_map is not DeviceMap.NONE,
            UnknownCode.FEATURE,
            "parallelism",
            "offload and device maps are not modelled for JAX",
        ),
        (
            training.gradient_checkpointing.mode is CheckpointMode.SELECTIVE
            or training.gradient_checkpointing.every != 1,
            UnknownCode.FEATURE,
            "training.gradientCheckpointing",
            "selective checkpointing, or of every n-th layer, is not modelled for JAX",
        ),
    )
    for is_refused, code, path, message in refused:
        if is_refused:
            raise UnsupportedJobError(f"{path}: {message}", code=code, path=path)
    noted = (
        (training.evaluation is not None, "training.evaluation", "an evaluation is not compiled"),
        (
            spec.input.padding is Padding.LONGEST,
            "input.padding",
            "compiled at the longest length; every other length is compiled anew",
        ),
        (
            training.master_weights,
            "training.masterWeights",
            "Keras keeps fp32 weights under mixed precision, and no copy beside 16-bit ones",
        ),
    )
    for is_noted, path, reason in noted:
        if is_noted:
            notebook.unknown(UnknownCode.FEATURE, path, reason)


def note_compile(layout: Layout, notebook: Notebook) -> None:
    """Note what a compile without a card leaves out."""
    notebook.assume(
        AssumptionCode.COMPILE,
        "framework",
        f"jaxlib {jax.__version__}",
        "XLA's own buffer assignment, compiled without the card: nothing is autotuned",
    )
    notebook.unknown(
        UnknownCode.KERNEL,
        "framework",
        "scratch memory of the convolutions and matrix products that XLA picks by trying them on "
        "the card comes on top",
    )
    if layout.num_devices > 1:
        notebook.assume(
            AssumptionCode.DEFAULT,
            "parallelism",
            f"{layout.data} x {layout.model}",
            "a mesh of data and model axes; weights cut along their last axis for tensor "
            "parallelism, along their largest for fsdp",
        )
