"""What the JAX frontend refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.estimator.frontends import jax_children as children
from tests.estimator.frontends.jax_children import file_of, job, perceptron
from tests.estimator.frontends.jax_server import InChild

pytestmark = pytest.mark.jax

LAMBDA = {
    "module": "keras.layers",
    "class_name": "Lambda",
    "config": {
        "name": "l",
        "function": {"class_name": "__lambda__", "config": {"code": "4wEAAA=="}},
    },
}
FOREIGN = {"module": "os", "class_name": "system", "config": {"command": "true"}}
OWN: dict[str, Any] = {
    "module": None,
    "class_name": "Mine",
    "registered_name": "mine>Mine",
    "config": {},
}


def with_layer(layer: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration that holds *layer*."""
    model = perceptron()
    config = model["config"]["config"]
    return {
        **model,
        "config": {**model["config"], "config": {**config, "layers": [*config["layers"], layer]}},
    }


@pytest.mark.parametrize(
    ("layer", "words"), [(LAMBDA, "not executed"), (FOREIGN, "'os'"), (OWN, "mine>Mine")]
)
def test_code_of_ones_own_is_not_executed(
    in_jax_child: InChild, layer: dict[str, Any], words: str
) -> None:
    """A Lambda, a foreign module and a registered class are refused by name."""
    kind, path, said = in_jax_child(children.refusal, job(with_layer(layer)))

    assert kind == "unsupported"
    assert path == "model.config"
    assert words in said


def test_a_hostile_width_costs_nothing(in_jax_child: InChild) -> None:
    """Two billion units are shapes, and too many of them."""
    kind, path, said = in_jax_child(children.refusal, job(perceptron(width=2_000_000_000)))

    assert kind == "unsupported"
    assert path == "model"
    assert "weights" in said


def test_an_unknown_model_gets_close_names(in_jax_child: InChild) -> None:
    """A misspelt name is answered with those it may have meant."""
    document = job({"source": "keras", "name": "ResNet51"})

    kind, path, said = in_jax_child(children.refusal, document)

    assert (kind, path) == ("unsupported", "model.name")
    assert "resnet50" in said


def test_an_unknown_optimizer_lists_the_known_ones(in_jax_child: InChild) -> None:
    """The message names what Keras has."""
    document = job(perceptron(), training={"optimizer": {"name": "sophia"}})

    kind, path, said = in_jax_child(children.refusal, document)

    assert (kind, path) == ("unsupported", "training.optimizer")
    assert "adamw" in said


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"parallelism": {"pipelineParallel": 2}}, "parallelism"),
        ({"parallelism": {"strategy": "zero1", "dataParallel": 2}}, "parallelism"),
        ({"adapter": {"type": "lora"}}, "adapter"),
        ({"objective": "dpo"}, "objective"),
    ],
)
def test_what_is_not_modelled_is_refused_by_path(
    in_jax_child: InChild, change: dict[str, Any], path: str
) -> None:
    """Nothing that moves memory is ignored."""
    kind, said_path, _ = in_jax_child(children.refusal, job(perceptron(), **change))

    assert (kind, said_path) == ("unsupported", path)


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"garbage" * 99, "jax-export"), (b"ML\xefR" + bytes(99), "stablehlo"), (b"", "stablehlo")],
)
def test_a_file_that_is_none_is_refused(in_jax_child: InChild, content: bytes, kind: str) -> None:
    """Neither a crash nor a figure."""
    refused, _, said = in_jax_child(children.refusal, job(file_of(kind, content), batch=1))

    assert refused in ("spec", "unsupported")
    assert "\n" not in said


def test_a_file_that_crashes_the_parser_is_refused(in_jax_child: InChild) -> None:
    """XLA's parser nests as deep as the file says, which ends its fork and nothing else."""
    attribute = "[" * 100_000 + "]" * 100_000
    module = f"module attributes {{a.b = {attribute}}} {{}}".encode()

    kind, path, said = in_jax_child(children.refusal, job(file_of("stablehlo", module), batch=1))

    assert (kind, path) == ("unsupported", "model.config.content")
    assert "signal" in said


def test_a_file_that_is_too_large_is_refused_by_its_size(in_jax_child: InChild) -> None:
    """Before anything of it is decoded."""
    document = job(file_of("stablehlo", bytes(20_000_000)), batch=1)

    kind, path, said = in_jax_child(children.refusal, document)

    assert (kind, path) == ("spec", "model.config.content")
    assert "19 MiB" in said


def test_a_file_of_another_kind_is_refused(in_jax_child: InChild) -> None:
    """With the kinds that are read."""
    kind, _, said = in_jax_child(children.refusal, job(file_of("pickle", b"x"), batch=1))

    assert kind == "unsupported"
    assert "jax-export" in said


def test_an_export_with_open_sizes_is_refused(in_jax_child: InChild) -> None:
    """It has to hold the shapes of the job."""
    kind, path, said = in_jax_child(_open_export)

    assert (kind, path) == ("unsupported", "model.config.content")
    assert "sizes open" in said


@pytest.mark.parametrize(
    ("arguments", "sizes", "words"),
    [
        (100_001, 0, "100001 arguments or results, at most 100000 are read"),
        (50_000, 50_000, "shapes of more than 400000 sizes together"),
    ],
)
def test_an_export_that_repeats_one_argument_is_refused_by_their_number(
    in_jax_child: InChild, arguments: int, sizes: int, words: str
) -> None:
    """A few bytes may stand for billions of sizes: a flatbuffer may refer to a part twice."""
    kind, path, said = in_jax_child(_repeating_export, arguments, sizes)

    assert (kind, path) == ("spec", "model.config.content")
    assert words in said


def _repeating_export(arguments: int, sizes: int) -> tuple[str, str, str]:
    return children.refused_repeating_export(arguments=arguments, sizes=sizes)


def _open_export() -> tuple[str, str, str]:
    return children.refused_export(open_sizes=True)


def test_a_step_that_jax_refuses_is_no_fault_of_ours(in_jax_child: InChild) -> None:
    """Sizes beyond 32 bits are told in JAX's words."""
    repeated = {
        "module": "keras.layers",
        "class_name": "RepeatVector",
        "config": {"name": "r", "n": 1 << 31},
    }

    kind, path, _ = in_jax_child(children.refusal, job(with_layer(repeated)))

    assert (kind, path) == ("unsupported", "model")
