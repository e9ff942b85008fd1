"""Recurrent layers of a backend that walks through time in Python, one step after the other.

keras.Model, JobSpec -> (nothing) | UnsupportedJobError

Keras on torch has no loop of its own: each step of a layer is a few operators more in the trace.
Many of them take longer than an estimate may, and torch ends the process when it lets go of a
graph that is deep enough.

Source: keras 3.15.1 src/backend/torch/rnn.py (`rnn`).
"""

from __future__ import annotations

from typing import Any

import keras

from estimator.errors import UnsupportedJobError
from estimator.notes import UnknownCode
from estimator.spec import JobSpec

MOST_STEPS = 10_000
"""Of all layers together. A step takes about 5 ms, forwards, backwards and twice."""


def check_steps(model: Any, spec: JobSpec) -> None:
    """Refuse a model whose layers walk through more steps than can be traced.

    Raises:
        UnsupportedJobError: naming the layer at which there are too many.
    """
    if keras.backend.backend() != "torch":
        return
    steps = 0
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.RNN):
            steps += _steps_of(layer) or spec.input.sequence_length or 0
            if steps > MOST_STEPS:
                raise UnsupportedJobError(
                    f"model: recurrent layers up to '{layer.name:.60}' take {steps} steps, which "
                    f"Keras runs one by one on torch; at most {MOST_STEPS} are traced",
                    code=UnknownCode.MODEL_CONFIG,
                    path="model",
                    hint="Keras on tensorflow or jax runs such layers as one loop",
                )


def _steps_of(layer: Any) -> int | None:
    """Return how many steps *layer* sees, None if its input leaves them open."""
    for node in layer._inbound_nodes:
        for tensor in node.input_tensors:
            if len(tensor.shape) > 1:
                steps: int | None = tensor.shape[1]
                return steps
    return None
