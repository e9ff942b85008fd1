"""What the tests of a traced step run in a fork of a process that has the TensorFlow frontend."""

from __future__ import annotations

from typing import Any

from estimator.frontends import load
from estimator.frontends.notebook import Notebook
from estimator.spec import parse_spec


def values_of_two_weights() -> tuple[float, float]:
    """Return what two weights of one shape and name hold, each given a value of its own."""
    load("tensorflow")
    import keras

    from estimator.frontends.tensorflow.weightless import MOST_REAL, weightless

    with weightless():
        first, second = (keras.Variable("zeros", shape=(MOST_REAL + 1,)) for _ in range(2))
    first.value.assign([1.0] * (MOST_REAL + 1))
    second.value.assign([2.0] * (MOST_REAL + 1))
    return float(first.value[0]), float(second.value[0])


def tracebacks() -> tuple[bool, bool]:
    """Return whether an operation made inside of `untraced` has a traceback, and one made after."""
    load("tensorflow")
    import tensorflow as tf

    from estimator.frontends.tensorflow.untraced import untraced

    with tf.Graph().as_default():
        with untraced():
            inside = tf.constant(1.0).op
        after = tf.constant(1.0).op
        return bool(inside.traceback), bool(after.traceback)


def folded_both(document: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the nodes of the step of *document* as text: without Grappler's MLIR pass, with it."""
    load("tensorflow")
    from estimator.frontends.tensorflow import folding
    from estimator.frontends.tensorflow.build import build_job
    from estimator.frontends.tensorflow.step import train_step
    from estimator.frontends.tensorflow.weightless import weightless

    spec = parse_spec(document)
    with weightless():
        graph = train_step(build_job(spec, Notebook()), spec).concrete().graph

    def nodes() -> tuple[str, ...]:
        return tuple(
            f"{node.name} {node.operator} {node.inputs} {node.controls} {node.outputs}"
            for node in folding.folded(graph).nodes
        )

    without = nodes()
    folding._config().graph_options.rewrite_options.disable_tfg_optimizer = False
    return without, nodes()
