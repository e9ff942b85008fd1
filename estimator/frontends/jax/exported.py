"""A step that comes in a file: a serialised `jax.export.Exported`, or a StableHLO module.

    model.config {format: jax-export | stablehlo, content: base64} -> Lowered

The file says every shape, so the batch is the one it was exported with. Nothing of it is run and no
pickle is read: an export is a flatbuffer, StableHLO is MLIR, and both are parsed in a fork with
limits. Which argument is a weight and which is a batch is not in it.
"""

from __future__ import annotations

import base64
import binascii

from estimator.errors import Problem, SpecError, TraceError, UnsupportedJobError
from estimator.frontends.jax.export_file import ExportLimitError, read_export
from estimator.frontends.jax.lowering import Lowered
from estimator.frontends.jax.mesh import Layout
from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec, ModelSource
from estimator.units import MIB

EXPORT, STABLEHLO = "jax-export", "stablehlo"
FORMATS = (EXPORT, STABLEHLO)
MAX_CONTENT = 16 * MIB
"""Of the file. A training step of ResNet-50 has 0.3 MiB."""
CONTENT = "model.config.content"


def exported_step(spec: JobSpec, layout: Layout, notebook: Notebook) -> Lowered:
    """Return the module in the configuration of *spec*.

    Raises:
        SpecError: if it is none, too large, or for other cards than the job has.
        UnsupportedJobError: if it leaves shapes open.
    """
    content = _content(spec)
    module = _of_export(content, layout) if spec.model.config["format"] == EXPORT else content
    notebook.assume(
        AssumptionCode.MODEL_DEFAULT,
        "input.batchSize",
        "as in the file",
        "every shape of the step is in it, the batch too",
    )
    notebook.unknown(
        UnknownCode.MODEL,
        "model.config",
        "which arguments of the step are weights is not in the file: all are counted as such",
    )
    return Lowered(module=module)


def failed_at_file(error: TraceError) -> UnsupportedJobError:
    """Return *error*, of XLA at the module in a file, as the file's: we did not write it.

    Types and attributes nested a hundred thousand deep end XLA's parser, and so its fork.
    """
    return UnsupportedJobError(f"{CONTENT}: {error.message}", code=UnknownCode.MODEL, path=CONTENT)


def is_exported(spec: JobSpec) -> bool:
    """Return whether the step of *spec* comes in a file."""
    return spec.model.source is ModelSource.FILE


def _content(spec: JobSpec) -> bytes:
    config = spec.model.config
    if config.get("format") not in FORMATS:
        raise UnsupportedJobError(
            "model.config.format: a 'file' is modelled for JAX if it is one of "
            f"{', '.join(FORMATS)}, with its bytes as base64 in content",
            code=UnknownCode.MODEL,
            path="model.config",
        )
    text = config.get("content")
    if not isinstance(text, str):
        raise _wrong("missing; it is the file as base64")
    if len(text) > 4 * MAX_CONTENT // 3 + 4:
        raise _wrong(
            f"has {3 * len(text) // 4 // MIB} MiB, at most {MAX_CONTENT // MIB} MiB are accepted"
        )
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _wrong("not base64") from error


def _of_export(content: bytes, layout: Layout) -> bytes:
    try:
        exported = read_export(content)
    except MemoryError:
        raise  # its limit, which says nothing of the file's form
    except ExportLimitError as error:
        raise _wrong(f"a jax.export that {error}") from error
    except Exception as error:  # a flatbuffer reader raises whatever it stumbles over
        raise _wrong(f"not a serialised jax.export ({type(error).__name__})") from error
    if exported.has_open_sizes:
        raise UnsupportedJobError(
            f"{CONTENT}: the export leaves sizes open; export it with the shapes of the job",
            code=UnknownCode.INPUT,
            path=CONTENT,
        )
    if exported.num_devices != layout.num_devices:
        raise _wrong(
            f"exported for {exported.num_devices} devices, the job has {layout.num_devices} "
            "(dataParallel x tensorParallel)"
        )
    return exported.module


def _wrong(message: str) -> SpecError:
    return SpecError([Problem(path=CONTENT, message=message)])
