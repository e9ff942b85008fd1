"""What the PyTorch frontend refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import bert, job, layers, llama, torchvision

pytestmark = pytest.mark.torch


def test_an_unknown_model_gets_close_matches(in_child: InChild) -> None:
    """A misspelt name is answered with the names it may have meant."""
    refusal = in_child(children.refusal, job(torchvision("resnet51")))

    assert refusal.kind == "unsupported"
    assert refusal.code == "model"
    assert refusal.path == "model.name"
    assert "resnet50" in refusal.hint


def test_an_unknown_option_is_named_with_its_path(in_child: InChild) -> None:
    """Options are checked against the constructor's signature, all at once."""
    refusal = in_child(children.refusal, job(torchvision("resnet18", width=2, weights="x")))

    assert refusal.kind == "spec"
    assert {path for path, _ in refusal.problems} == {
        "model.options.width",
        "model.options.weights",
    }


def test_an_unknown_optimizer_lists_the_known_ones(in_child: InChild) -> None:
    """The message names what is modelled."""
    document = job(torchvision(), training={"optimizer": {"name": "sophia"}})

    refusal = in_child(children.refusal, document)

    assert (refusal.code, refusal.path) == ("optimizer", "training.optimizer.name")
    assert "adamw" in refusal.message


def test_a_hub_name_nobody_knows_asks_for_the_config(in_child: InChild) -> None:
    """Without an inline configuration and an entry in the catalog there is nothing to build."""
    document = job({"source": "huggingface", "name": "nobody/nothing"})

    refusal = in_child(children.refusal, document)

    assert refusal.code == "model"
    assert "model.config" in refusal.hint


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"objective": "dpo"}, "objective"),
        ({"objective": "grpo"}, "objective"),
        ({"adapter": {"type": "no-such-method"}}, "adapter"),
        ({"adapter": {"type": "xlora"}}, "adapter"),
        ({"parallelism": {"strategy": "fsdp", "dataParallel": 4}}, "parallelism"),
        ({"parallelism": {"tensorParallel": 2}}, "parallelism"),
        ({"training": {"float8": {}}}, "precision"),
        ({"training": {"gradientCheckpointing": "selective"}}, "feature"),
        ({"runtime": {"env": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}}}, "allocator"),
    ],
    ids=str,
)
def test_what_is_not_modelled_is_refused_by_name(
    in_child: InChild, change: dict[str, Any], code: str
) -> None:
    """Parts of a spec that would make the figure meaningless are errors with a code."""
    refusal = in_child(children.refusal, job(layers(10, 10), **change))

    assert refusal.kind == "unsupported"
    assert refusal.code == code


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (llama(hidden_size=10**12), "spec"),
        (llama(num_hidden_layers=10**9), "spec"),
        (llama(vocab_size=10**7, hidden_size=10**7), "spec"),
        (llama(num_attention_heads=0), "unsupported"),
        (llama(hidden_size="large"), "unsupported"),
        (bert(model_type="no-such-type"), "unsupported"),
        (
            {**llama(), "task": "token-classification", "config": {"model_type": "vit"}},
            "unsupported",
        ),
    ],
    ids=["wide", "deep", "heavy", "no-heads", "a-word", "no-type", "no-head"],
)
def test_absurd_configurations_are_refused_in_words(
    in_child: InChild, model: dict[str, Any], kind: str
) -> None:
    """Numbers no model has, and values no model takes, end in one short message."""
    refusal = in_child(children.refusal, job(model))

    assert refusal.kind == kind
    assert "Traceback" not in refusal.message
    assert len(refusal.message) < 500


def test_every_problem_of_a_layer_list_is_reported(in_child: InChild) -> None:
    """A list of layers is checked as a whole, each problem with its path."""
    model = layers(10, 10)
    model["config"]["layers"] += [
        {"type": "lineer"},
        {"type": "linear", "in": -1, "out": 10, "extra": 1},
        {"type": "activation", "name": "Nope"},
    ]

    refusal = in_child(children.refusal, job(model))

    assert [path for path, _ in refusal.problems] == [
        "model.config.layers[1].type",
        "model.config.layers[2].in",
        "model.config.layers[2].extra",
        "model.config.layers[3].name",
    ]


def test_a_batch_the_model_cannot_take_is_named_as_input(in_child: InChild) -> None:
    """What a real run would die of in its first forward pass is said of the input."""
    document = job(llama(vocab_size=0), input={"sequenceLength": 64})

    refusal = in_child(children.refusal, document)

    assert (refusal.kind, refusal.code, refusal.path) == ("unsupported", "input", "input")


def test_zoos_that_are_not_built_are_named(in_child: InChild) -> None:
    """A model of Ultralytics is a spec and no estimate, and the answer says which zoos are."""
    refusal = in_child(children.refusal, job({"source": "ultralytics", "name": "yolo11n"}))

    assert (refusal.kind, refusal.code, refusal.path) == ("unsupported", "model", "model.source")


def test_keys_without_a_use_are_not_ignored(in_child: InChild) -> None:
    """Options of a transformers model would be dropped silently: they are an error."""
    refusal = in_child(children.refusal, job({**bert(), "options": {"depth": 3}}))

    assert [path for path, _ in refusal.problems] == ["model.options"]


def test_the_webhooks_frontend_imports_no_code_a_spec_names(in_child: InChild) -> None:
    """`source: file` with a path of code is unsupported, and what would import it is not loaded."""
    model = {"source": "file", "name": "os:getcwd"}

    refusal = in_child(children.refusal, job(model))

    assert (refusal.kind, refusal.path) == ("unsupported", "model.source")
    assert not in_child(children.is_loaded, "estimator.frontends.pytorch.user_module")


@pytest.mark.parametrize(
    ("document", "path", "accepted"),
    [
        (job(llama(hidden_size=250)), "model.config.num_attention_heads", "multiple"),
        (job(llama(num_key_value_heads=3)), "model.config.num_key_value_heads", "divisor"),
        (
            job(bert(max_position_embeddings=128), input={"sequenceLength": 512}),
            "input.sequenceLength",
            "128 tokens",
        ),
        (
            job(
                {"source": "huggingface", "name": "gpt2", "task": "causal-lm"},
                input={"sequenceLength": 1025},
            ),
            "input.sequenceLength",
            "1024 tokens",
        ),
    ],
    ids=["heads", "groups", "positions", "catalog"],
)
def test_what_does_not_fit_together_is_the_users_to_mend(
    in_child: InChild, document: dict[str, Any], path: str, accepted: str
) -> None:
    """The path, and what is accepted."""
    refusal = in_child(children.refusal, document)

    assert refusal.kind == "spec"
    assert refusal.problems[0][0] == path
    assert accepted in refusal.problems[0][1]


def test_rotary_positions_have_no_end(in_child: InChild) -> None:
    """A run beyond what the model was trained for is a run."""
    document = job(llama(max_position_embeddings=128), input={"sequenceLength": 256})

    assert in_child(children.refusal, document) is None


def test_packed_weights_that_the_job_does_not_tell_of_are_not_taken_as_whole(
    in_child: InChild,
) -> None:
    """As whole weights they would need four times what they do."""
    document = job(llama(quantization_config={"quant_method": "gptq", "bits": 4}))

    refusal = in_child(children.refusal, document)

    assert (refusal.code, refusal.path) == ("quantization", "quantization")
    assert "gptq" in refusal.message


def test_a_job_that_trains_nothing_is_told_so(in_child: InChild) -> None:
    """A frozen base without an adapter has no parameter an optimizer would take."""
    document = job(llama(), quantization={"scheme": "nf4", "bits": 4})

    refusal = in_child(children.refusal, document)

    assert refusal.problems == (
        ("model", "has nothing to train; a job that trains nothing is phase: infer"),
    )
