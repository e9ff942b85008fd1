"""What the TensorFlow frontend refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.estimator.frontends.jax_server import InChild
from tests.estimator.frontends.tensorflow import children
from tests.estimator.frontends.tensorflow.jobs import job, layer, perceptron, sequential

pytestmark = pytest.mark.tensorflow

HOSTILE: dict[str, dict[str, Any]] = {
    "a Lambda": layer("Lambda", function="bGFtYmRh", name="code"),
    "pickled code": layer(
        "Dense", units=4, activation={"class_name": "__lambda__", "config": {"value": "gAA="}}
    ),
    "a foreign module": {"module": "os", "class_name": "system", "config": {"command": "id"}},
    "a saved model": layer("TFSMLayer", filepath="/models/x"),
    "a file to fetch": layer(
        "Dense",
        units=4,
        activation={
            "module": "keras.utils",
            "class_name": "function",
            "config": "get_file",
            "registered_name": "function",
        },
    ),
    "a vocabulary in a file": layer("StringLookup", vocabulary="/etc/passwd"),
    "a class of one's own": {
        "module": None,
        "class_name": "Mine",
        "registered_name": "theirs>Mine",
        "config": {},
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_document_that_runs_or_reads_anything_is_refused(
    in_tensorflow_child: InChild, name: str
) -> None:
    """Named by its place, before Keras sees it."""
    refusal = in_tensorflow_child(children.refusal, job(sequential([8], HOSTILE[name])))

    assert refusal is not None
    assert refusal.kind in ("spec", "unsupported")
    assert "model" in refusal.message


def test_a_document_without_end_is_refused(in_tensorflow_child: InChild) -> None:
    """More layers than any model has."""
    layers = [layer("ReLU", name=f"r{number}") for number in range(11_000)]

    refusal = in_tensorflow_child(children.refusal, job(sequential([8], *layers)))

    assert refusal is not None
    assert refusal.kind == "spec"


def test_a_layer_of_two_thousand_million_units_costs_nothing(
    in_tensorflow_child: InChild,
) -> None:
    """Weights are never allocated: the trace says what they would take."""
    trace = in_tensorflow_child(children.trace, job(perceptron(8, 1 << 31, 4), 1))

    assert max(trace.sizes) >= 8 * (1 << 31) * 4


def test_an_unknown_model_gets_close_matches(in_tensorflow_child: InChild) -> None:
    """A misspelt name is answered with the names it may have meant."""
    refusal = in_tensorflow_child(children.refusal, job("ResNet51"))

    assert (refusal.code, refusal.path) == ("model", "model.name")
    assert "resnet50" in refusal.hint.lower()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"objective": "dpo"}, "objective"),
        ({"adapter": {"type": "lora"}}, "adapter"),
        ({"parallelism": {"strategy": "fsdp", "dataParallel": 2}}, "parallelism"),
        ({"training": {"optimizer": {"name": "galore"}}}, "optimizer"),
        ({"training": {"gradientCheckpointing": "full"}}, "feature"),
        ({"model": {"source": "timm", "name": "resnet50"}}, "model"),
        (
            {"model": {"source": "huggingface", "name": "x", "config": {"model_type": "llama"}}},
            "model",
        ),
    ],
)
def test_what_is_not_modelled_is_named(
    in_tensorflow_child: InChild, change: dict[str, Any], code: str
) -> None:
    """Each with the code metrics count it by."""
    document = {**job(perceptron(8, 4)), **change}

    refusal = in_tensorflow_child(children.refusal, document)

    assert (refusal.kind, refusal.code) == ("unsupported", code)


def test_a_size_the_model_leaves_open_has_to_be_told(in_tensorflow_child: InChild) -> None:
    """The message names what is missing."""
    model = sequential([8], layer("Dense", units=4))
    model["config"]["layers"][0]["config"]["batch_shape"] = [None, None, 8]

    refusal = in_tensorflow_child(children.refusal, job(model))

    assert refusal.kind == "spec"
    assert refusal.problems[0][0].startswith("input")


@pytest.mark.parametrize(
    ("shape", "added"),
    [
        ([8], layer("RepeatVector", n=1 << 31)),
        ([8], layer("Dense", units=4, name="\u202e")),
    ],
    ids=["sizes beyond 32 bits", "a name no graph takes"],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_that_tensorflow_refuses_is_no_fault_of_ours(
    in_tensorflow_child: InChild, shape: list[int], added: dict[str, Any], compiled: bool
) -> None:
    """Told in TensorFlow's words, compiled or not."""
    document = job(sequential(shape, added), training={"compile": compiled})

    refusal = in_tensorflow_child(children.refusal, document)

    assert (refusal.kind, refusal.path) == ("unsupported", "model")


@pytest.mark.parametrize(
    ("added", "words"),
    [
        (layer("Conv2D", filters=8, kernel_size=3, strides=0, name="c"), "Conv2D 'c': The `stride"),
        (layer("Conv2D", filters=8, kernel_size=3, groups=0, name="c"), "Conv2D 'c': The number"),
        (layer("Reshape", target_shape=[0, -1], name="r"), "Reshape 'r': "),
        (layer("Dense", units=4, activation="no_such", name="d"), "Dense 'd': "),
    ],
)
def test_a_layer_that_keras_refuses_is_named(
    in_tensorflow_child: InChild, added: dict[str, Any], words: str
) -> None:
    """With Keras' own reason, and neither its whole configuration nor how Python failed."""
    refusal = in_tensorflow_child(children.refusal, job(sequential([8, 8, 3], added)))

    assert (refusal.kind, refusal.path) == ("unsupported", "model")
    assert words in refusal.message
    assert "config=" not in refusal.message
    assert "modulo" not in refusal.message


def test_a_model_deeper_than_keras_walks_is_refused(in_tensorflow_child: InChild) -> None:
    """At once: its job would fail in Keras too."""
    layers = [layer("ReLU", name=f"r{number}") for number in range(1_200)]

    refusal = in_tensorflow_child(children.refusal, job(sequential([8], *layers)))

    assert (refusal.kind, refusal.path) == ("unsupported", "model")
    assert "deeper than Keras" in refusal.message


def test_a_name_cannot_command_a_terminal(in_tensorflow_child: InChild) -> None:
    """Names of layers come from a document, and back in what Keras says of them."""
    added = layer("Conv2D", filters=8, kernel_size=3, groups=0, name="\x1b[31mred\u202e")

    refusal = in_tensorflow_child(children.refusal, job(sequential([8, 8, 3], added)))

    assert refusal.message.isprintable()


def test_a_model_that_was_never_built_is_told_so(in_tensorflow_child: InChild) -> None:
    """Without an input there is no shape to count from."""
    model = {"class_name": "Sequential", "config": {"name": "m", "layers": []}}

    refusal = in_tensorflow_child(children.refusal, job(model))

    assert refusal.problems[0][0] == "model.config"


def test_degrees_are_named_as_they_are_written(in_tensorflow_child: InChild) -> None:
    """The path of a refusal is one of the document."""
    refusal = in_tensorflow_child(
        children.refusal, job("ResNet50", parallelism={"tensorParallel": 2})
    )

    assert refusal.path == "parallelism.tensorParallel"
