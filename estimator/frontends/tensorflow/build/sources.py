"""Which builder makes the model of a spec.

JobSpec -> Built
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.frontends.keras.models import build_model
from estimator.frontends.keras.training import (
    Shape,
    input_shapes,
    loss_of,
    target_shapes,
)
from estimator.frontends.notebook import Notebook
from estimator.frontends.tensorflow.build.bert import build_bert
from estimator.frontends.tensorflow.build.job import Built
from estimator.notes import UnknownCode
from estimator.spec import JobPhase, JobSpec, ModelSource


def build_job(spec: JobSpec, notebook: Notebook) -> Built:
    """Return the model of *spec* and what it is fed.

    Raises:
        SpecError: for keys its source does not take.
        UnsupportedJobError: for a source that is not Keras'.
    """
    builder = BUILDERS.get(spec.model.source)
    if builder is None:
        known = ", ".join(BUILDERS)
        raise UnsupportedJobError(
            f"model.source: '{spec.model.source}' is not modelled for tensorflow; known: {known}",
            code=UnknownCode.MODEL,
            path="model.source",
        )
    return builder(spec, notebook)


def _keras(spec: JobSpec, notebook: Notebook) -> Built:
    """Return a model of the zoo, or that of the document in `model.config`."""
    if spec.model.config and spec.model.options:
        message = "a model given as a document takes no options"
        raise SpecError([Problem(path="model.options", message=message)])
    if spec.model.source is ModelSource.FILE and not spec.model.config:
        raise UnsupportedJobError(
            "model.config: the file has not been read: its configuration is expected here",
            code=UnknownCode.MODEL_CONFIG,
            path="model.config",
        )
    return _fed(build_model(spec, notebook), spec, notebook)


def _huggingface(spec: JobSpec, notebook: Notebook) -> Built:
    """Return an encoder of the Hub, rebuilt in Keras layers from its configuration."""
    return _fed(build_bert(spec, notebook), spec, notebook)


def _fed(model: Any, spec: JobSpec, notebook: Notebook) -> Built:
    """Return *model* with a batch, and its usual loss if it is trained."""
    inputs = _specs(input_shapes(model, spec))
    if spec.phase is not JobPhase.TRAIN:
        return Built(model=model, inputs=inputs)
    loss = loss_of(model, notebook)
    labels = _specs(target_shapes(model, loss, spec))
    return Built(model=model, inputs=inputs, labels=labels, loss=loss)


def _specs(shapes: Sequence[tuple[Shape, str]]) -> Any:
    """Return the spec of each tensor of a batch, of one alone without a list."""
    found = [tf.TensorSpec(shape, dtype) for shape, dtype in shapes]
    return found[0] if len(found) == 1 else found


BUILDERS: Mapping[ModelSource, Callable[[JobSpec, Notebook], Built]] = {
    ModelSource.KERAS: _keras,
    ModelSource.FILE: _keras,
    ModelSource.HUGGINGFACE: _huggingface,
}
