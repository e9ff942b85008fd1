"""Keras on the torch backend is a module of torch, traced like any other."""

from __future__ import annotations

import pytest

from estimator.trace import Role, Trace
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.jax_children import perceptron
from tests.estimator.frontends.reading import fault, job

pytestmark = pytest.mark.torch

WEIGHTS = 4 * (1024 * 1024 + 1024) * 4
"""Bytes of four dense layers of 1,024 with a bias."""


def of_role(trace: Trace, role: Role) -> int:
    """Return the bytes of all tensors of *role*."""
    pairs = zip(trace.sizes, trace.roles, strict=True)
    return sum(size for size, found in pairs if found == role)


def test_a_configuration_is_trained(in_child: InChild) -> None:
    """With its weights, a gradient for each, and the slots of its optimizer."""
    document = job(perceptron(), batch=64, training={"optimizer": {"name": "adam"}})

    trace = in_child(children.trace, document)

    assert of_role(trace, Role.PARAMETER) == WEIGHTS
    assert of_role(trace, Role.OPTIMIZER) >= 2 * WEIGHTS
    assert of_role(trace, Role.GRADIENT) >= WEIGHTS
    assert fault(trace) is None


def test_an_application_is_trained_by_name(in_child: InChild) -> None:
    """MobileNetV2 has 3,538,984 weights, its running statistics included."""
    document = job({"source": "keras", "name": "MobileNetV2"}, batch=2)

    trace = in_child(children.trace, document)

    assert trace.parameters == 3_538_984
    assert fault(trace) is None


def test_a_sequence_too_long_to_be_walked_is_refused(in_child: InChild) -> None:
    """Keras on torch runs each step of a recurrent layer as operators of its own."""
    model = perceptron(width=8, depth=0)
    layers = model["config"]["config"]["layers"]
    layers[0]["config"]["batch_shape"] = [None, 1_000_000, 8]
    layers.append(
        {"module": "keras.layers", "class_name": "LSTM", "config": {"name": "cells", "units": 8}}
    )
    model["config"]["config"]["build_input_shape"] = [None, 1_000_000, 8]

    refusal = in_child(children.refusal, job(model))

    assert (refusal.kind, refusal.path) == ("unsupported", "model")
    assert "'cells' take 1000000 steps" in refusal.message


def test_code_in_a_configuration_is_refused(in_child: InChild) -> None:
    """As by every frontend that reads Keras' configurations."""
    model = perceptron()
    layers = model["config"]["config"]["layers"]
    layers.append({"module": "os", "class_name": "system", "config": {}})

    refusal = in_child(children.refusal, job(model))

    assert refusal.kind == "unsupported"
    assert refusal.path == "model.config"
