"""JobSpec documents: what is accepted, and every problem at once."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.errors import SpecError
from estimator.spec import CheckpointMode, JobSpec, parse_spec


def minimal(**changes: Any) -> dict[str, Any]:
    """Return the smallest valid JobSpec document, with *changes* on top."""
    return {
        "framework": "pytorch",
        "model": {"source": "torchvision", "name": "resnet50"},
        "input": {"batchSize": 32},
    } | changes


def problems(document: object) -> list[str]:
    """Return the problems of *document* as text."""
    with pytest.raises(SpecError) as caught:
        parse_spec(document)
    return [str(problem) for problem in caught.value.problems]


def test_the_smallest_spec_has_the_contracts_defaults() -> None:
    """Optional keys may be left out and get the documented defaults."""
    spec = parse_spec(minimal())

    assert spec.phase == "train"
    assert spec.training.precision == "fp32"
    assert spec.training.optimizer.name == "adamw"
    assert spec.training.gradient_checkpointing.mode is CheckpointMode.NONE
    assert not spec.training.compile.enabled
    assert spec.parallelism.bucket_bytes == 25 * 1024 * 1024


def test_five_mistakes_are_reported_at_once_with_their_paths() -> None:
    """Every problem comes in one answer, each with path, value and what is accepted."""
    found = problems(
        {
            "framework": "torch",
            "model": {"source": "torchvision", "nam": "resnet50"},
            "input": {"batchSize": 10**12},
            "training": {"precision": "fp31"},
        }
    )

    assert found == [
        "framework: 'torch' is not one of 'pytorch', 'tensorflow', 'mxnet' or 'jax'",
        "model.name: missing; it is required",
        "model.nam: unknown key (value 'resnet50')",
        "input.batchSize: 1000000000000 is not accepted: "
        "input should be less than or equal to 1048576",
        "training.precision: 'fp31' is not one of "
        "'fp32', 'tf32', 'bf16', 'fp16', 'amp-bf16' or 'amp-fp16'",
    ]


@pytest.mark.parametrize("value", ["32", 32.5, True, None, -1, 0])
def test_a_batch_size_is_a_positive_whole_number(value: object) -> None:
    """Numbers are not guessed from text, fractions or booleans."""
    assert problems(minimal(input={"batchSize": value}))[0].startswith("input.batchSize: ")


def test_a_word_or_a_mapping_sets_gradient_checkpointing() -> None:
    """`full` is short for `{mode: full}`, and both have one digest."""
    word = parse_spec(minimal(training={"gradientCheckpointing": "full"}))
    mapping = parse_spec(minimal(training={"gradientCheckpointing": {"mode": "full"}}))

    assert word.training.gradient_checkpointing.mode is CheckpointMode.FULL
    assert word.digest() == mapping.digest()


def test_compile_is_a_flag_or_a_mapping() -> None:
    """`compile: true` and `compile: {mode: default}` both turn it on."""
    assert parse_spec(minimal(training={"compile": True})).training.compile.enabled
    assert parse_spec(minimal(training={"compile": {"mode": "default"}})).training.compile.enabled
    assert not parse_spec(minimal(training={"compile": False})).training.compile.enabled


def test_the_world_size_is_checked_against_the_degrees() -> None:
    """A world size that is not the product of the degrees is a mistake."""
    found = problems(minimal(parallelism={"worldSize": 8, "dataParallel": 2, "tensorParallel": 2}))

    assert found == [
        "parallelism.worldSize: 8 is not the product of dataParallel, tensorParallel, "
        "pipelineParallel and contextParallel (4)"
    ]


def test_a_shard_group_has_to_divide_the_replicas() -> None:
    """A group of more ranks than there are would make every share too small."""
    found = problems(minimal(parallelism={"dataParallel": 8, "shardGroup": 3}))

    assert found == ["parallelism.shardGroup: 3 does not divide dataParallel (8)"]
    parse_spec(minimal(parallelism={"dataParallel": 8, "shardGroup": 4}))
    parse_spec(minimal(parallelism={"shardGroup": 4}))


def test_the_digest_does_not_depend_on_key_order_or_written_defaults() -> None:
    """A default that is written out is the same job."""
    plain = parse_spec(minimal())
    written = parse_spec(dict(reversed(minimal(phase="train").items())))

    assert plain.digest() == written.digest()
    assert plain.digest().startswith("sha256:")


@pytest.mark.parametrize(
    ("absent", "given"),
    [
        ({"optimizer": {"name": "adamw"}}, {"optimizer": {"name": "adamw", "weightDecay": 0.0}}),
        (
            {"zeroGrad": {"position": "before-forward"}},
            {"zeroGrad": {"position": "before-forward", "setToNone": True}},
        ),
    ],
)
def test_what_is_left_to_the_framework_is_not_the_same_as_a_value(
    absent: dict[str, Any], given: dict[str, Any]
) -> None:
    """Jobs that may need other memory have other digests: answers are remembered by digest."""
    left = parse_spec(minimal(training=absent))
    stated = parse_spec(minimal(training=given))

    assert left.digest() != stated.digest()


def test_the_document_holds_only_what_was_given() -> None:
    """A spec sent to a worker and read again is the same spec, down to what was left out."""
    spec = parse_spec(minimal(training={"optimizer": {"name": "sgd"}}))

    again = parse_spec(spec.document())

    assert again == spec
    assert again.training.optimizer.weight_decay is None
    assert spec.document()["training"] == {"optimizer": {"name": "sgd"}}


def test_a_document_that_nests_without_end_is_refused() -> None:
    """Depth is bounded before anything walks the document."""
    config: dict[str, Any] = {}
    for _ in range(100):
        config = {"again": config}

    found = problems(minimal(model={"source": "layers", "name": "deep", "config": config}))

    assert found == ["nested deeper than 64 or longer than 200000 values"]


@pytest.mark.parametrize("document", [None, [], "spec", 3])
def test_a_document_that_is_no_mapping_is_refused(document: object) -> None:
    """A list or a word is not a JobSpec."""
    assert problems(document) == ["a JobSpec is a mapping of keys to values"]


@pytest.mark.parametrize("value", [1 << 63, float("nan"), float("inf"), b"x", {1: "x"}])
def test_values_that_json_does_not_have_are_refused(value: object) -> None:
    """Numbers over 64 bits, not-a-number, bytes and keys that are no text are named."""
    config = {"hidden_size": value}

    (problem,) = problems(minimal(model={"source": "layers", "name": "odd", "config": config}))

    assert problem.startswith("model.config.hidden_size: ")


def test_texts_without_end_are_refused() -> None:
    """Two hundred megabytes of a file are not carried to a worker."""
    config = {"format": "stablehlo", "content": "A" * (29 << 20)}

    (problem,) = problems(minimal(model={"source": "file", "name": "x", "config": config}))

    assert problem.startswith("model.config.content: texts of more than")


@pytest.mark.parametrize("begin", ["\x1b[31m", "snake_\x1b[31m"])
def test_an_odd_key_is_shown_as_a_value_is(begin: str) -> None:
    """Neither a terminal nor a reader has to bear what somebody wrote for a key."""
    (problem,) = problems(minimal(**{begin + "x" * 5_000: 1}))

    assert problem.isprintable()
    assert len(problem) < 200


def test_a_key_in_snake_case_is_told_its_name() -> None:
    """People who write Python names are told the contract's."""
    assert problems(minimal(input={"batchSize": 1, "sequence_length": 8})) == [
        "input.sequence_length: unknown key (value 8); did you mean 'sequenceLength'?"
    ]


def test_a_word_in_place_of_a_mapping_says_so() -> None:
    """`optimizer: sgd` is a mapping without its key."""
    assert problems(minimal(training={"optimizer": "sgd"})) == [
        "training.optimizer: 'sgd' is not a mapping of keys to values"
    ]


def test_the_schema_explains_the_fields() -> None:
    """Field docstrings are in the JSON Schema for editors to show."""
    schema = JobSpec.model_json_schema(by_alias=True)

    assert (
        "Micro-batch of one rank"
        in schema["$defs"]["Input"]["properties"]["batchSize"]["description"]
    )
