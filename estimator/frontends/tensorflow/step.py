"""One step of a job: Keras' own train, test or predict step, and the batch it is called with.

Built, JobSpec -> Step -> concrete function
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from estimator.frontends.keras.training import optimizer_of
from estimator.frontends.tensorflow.build.job import Built, in_words_of_keras
from estimator.frontends.tensorflow.mirrored import sum_gradients
from estimator.spec import JobSpec, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What runs once a batch."""

    function: Callable[..., Any]
    specs: tuple[Any, ...]
    """What it is called with: each a `tf.TensorSpec`, or a list of them."""

    def concrete(self) -> Any:
        """Return the step as one graph.

        Raises:
            UnsupportedJobError: if Keras or TensorFlow refuses it.
        """
        with in_words_of_keras():
            return tf.function(self.function, autograph=False).get_concrete_function(*self.specs)


def train_step(built: Built, spec: JobSpec) -> Step:
    """Return the whole step: forward, gradients, update. Compiles the model for training."""
    model = built.model
    model.compile(optimizer=optimizer_of(spec), loss=built.loss, jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    if num_replicas(spec) > 1:
        sum_gradients(model.optimizer)

    def step(inputs: Any, labels: Any) -> Any:
        return model.train_step((inputs, labels))

    return Step(function=step, specs=(built.inputs, built.labels))


def test_step(built: Built, batch: int) -> Step:
    """Return a step of `evaluate` with another batch, of a model compiled for training."""
    model = built.model

    def step(inputs: Any, labels: Any) -> Any:
        return model.test_step((inputs, labels))

    return Step(function=step, specs=(_of(built.inputs, batch), _of(built.labels, batch)))


def predict_step(built: Built) -> Step:
    """Return a step of `predict`: the forward pass alone."""
    model = built.model
    return Step(function=lambda inputs: model(inputs, training=False), specs=(built.inputs,))


def num_replicas(spec: JobSpec) -> int:
    """Return over how many cards the job is mirrored."""
    parallel = spec.parallelism
    if parallel.strategy is not Strategy.MIRRORED:
        return 1
    return parallel.world_size or parallel.data_parallel


def _of(specs: Any, batch: int) -> Any:
    """Return *specs* with another batch."""
    return keras.tree.map_structure(
        lambda each: tf.TensorSpec((batch, *each.shape[1:]), each.dtype), specs
    )
