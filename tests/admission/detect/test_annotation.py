"""The owner's word: merged key by key, checked whole, and heard over the flags."""

from __future__ import annotations

import pytest

from admission.codes import ReasonCode
from admission.values import Document
from tests.admission.detect.jobs import codes, config_map, container, found, job, read

SPEC = "vramgate.dev/spec"
REF = "vramgate.dev/spec-ref"
LINE = ("python", "/imagenet/main.py", "-a", "resnet50", "-b", "256")
WHOLE = (
    '{"framework": "pytorch", "model": {"source": "timm", "name": "vit_base_patch16_224"}, '
    '"input": {"batchSize": 16}}'
)


def test_an_opaque_job_is_read_by_its_annotation() -> None:
    """A whole spec needs nothing from the command."""
    reading = read(job(container(), annotations={SPEC: WHOLE}))

    assert reading.spec is not None
    assert (reading.spec.model.name, reading.spec.input.batch_size) == ("vit_base_patch16_224", 16)
    assert reading.sources["input.batchSize"] == f"metadata.annotations[{SPEC}]"


def test_yaml_is_as_good_as_json() -> None:
    """Framework may be left out: the zoo tells it."""
    stated = "model: {source: torchvision, name: vgg16}\ninput: {batchSize: 8}\n"
    reading = read(job(container(), annotations={SPEC: stated}))

    assert reading.spec is not None
    assert reading.spec.framework == "pytorch"


def test_a_partial_annotation_is_merged_over_the_flags() -> None:
    """What is stated counts, what is not stays, and the contradiction is a warning."""
    stated = "input: {batchSize: 64}\ntraining: {precision: amp-bf16}"
    reading = read(job(container(*LINE), annotations={SPEC: stated}))

    assert reading.spec is not None
    assert found(reading, "model.name", "input.batchSize", "input.imageSize") == {
        "model.name": "resnet50",
        "input.batchSize": 64,
        "input.imageSize": [3, 224, 224],
    }
    assert reading.warnings == (
        f"metadata.annotations[{SPEC}]: input.batchSize 64 contradicts containers[0].args -b 256; "
        "the annotation counts",
    )
    assert reading.sources["model.name"] == "containers[0].args -a"


def test_the_workload_speaks_over_the_template() -> None:
    """Merge order: container, template, workload."""
    reading = read(
        job(
            container(*LINE),
            annotations={SPEC: "input: {batchSize: 2}"},
            template_annotations={SPEC: "input: {batchSize: 1, sequenceLength: 5}"},
        )
    )

    assert found(reading, "input") == {
        "input": {"batchSize": 2, "imageSize": [3, 224, 224], "sequenceLength": 5}
    }


def test_a_named_model_replaces_the_one_found() -> None:
    """Nothing of the old model stays beside the new name."""
    args = ("python", "run_glue.py", "--do_train", "--task_name=mnli", "--model_name_or_path=org/a")
    stated = "model: {source: timm, name: resnet50}"
    reading = read(job(container(*args), annotations={SPEC: stated}))

    assert found(reading, "model") == {"model": {"source": "timm", "name": "resnet50"}}
    assert "model.task" not in reading.sources


def test_every_problem_of_an_annotation_is_reported_at_once() -> None:
    """Each with the annotation's path, the spec path and what is accepted."""
    stated = "input: {batchSize: -1}\nmodle: x\ntraining: {precision: fp7}"
    reading = read(job(container(*LINE), template_annotations={SPEC: stated}))

    assert reading.spec is None
    assert codes(reading) == [ReasonCode.INVALID_SPEC] * 3
    assert {finding.path for finding in reading.unknowns} == {
        f"spec.template.metadata.annotations[{SPEC}]"
    }
    assert {finding.reason.partition(":")[0] for finding in reading.unknowns} == {
        "input.batchSize",
        "modle",
        "training.precision",
    }


def test_text_that_is_no_document_is_reported() -> None:
    """Broken YAML, a list and an alias are the annotation's fault."""
    for stated in ("{a: ", "[1, 2]", "a: &x 1\nb: *x", "a: 1\n---\nb: 2"):
        reading = read(job(container(*LINE), annotations={SPEC: stated}))

        assert codes(reading) == [ReasonCode.INVALID_SPEC]


def test_odd_values_come_back_as_json() -> None:
    """Dates and huge numbers of YAML are text in what is shown."""
    stated = f"model: {{source: timm, name: 2026-01-01}}\ninput: {{batchSize: {10**30}}}"
    reading = read(job(container(), annotations={SPEC: stated}))

    assert found(reading, "model.name", "input.batchSize") == {
        "model.name": "2026-01-01",
        "input.batchSize": str(10**30),
    }
    assert codes(reading) == [ReasonCode.INVALID_SPEC]


def test_a_gap_is_closed_by_what_it_asks_for() -> None:
    """A ZeRO file that is not read is no obstacle once the strategy is stated."""
    args = (
        *("deepspeed", "run_clm.py", "--do_train", "--model_name_or_path", "org/a"),
        *("--deepspeed", "ds.json"),
    )
    stated = "parallelism: {strategy: zero3, dataParallel: 2}"
    reading = read(job(container(*args, gpus=2), annotations={SPEC: stated}))

    assert reading.unknowns == ()
    assert reading.spec is not None
    assert reading.spec.parallelism.strategy == "zero3"


def test_what_an_annotation_leaves_out_is_asked_for() -> None:
    """A model alone is not enough."""
    reading = read(job(container(), annotations={SPEC: "model: {source: timm, name: resnet50}"}))

    assert codes(reading) == [ReasonCode.NO_COMMAND]


def test_a_reference_is_wanted_first() -> None:
    """Nobody has fetched it yet: the rest is read, and it is asked for."""
    reading = read(job(container(*LINE), annotations={REF: "configmap/a/b"}))

    assert reading.spec is not None
    assert reading.wanted == ("configmap/a",)


def test_a_reference_is_read_under_the_spec() -> None:
    """What is stated beats what is referred to, which beats what is found."""
    documents = config_map("a", b="input: {batchSize: 7}\ntraining: {precision: amp-bf16}")
    annotations = {REF: "configmap/a/b", SPEC: "input: {batchSize: 9}"}
    reading = read(job(container(*LINE), annotations=annotations), documents=documents)

    assert found(reading, "model.name", "input.batchSize", "training.precision") == {
        "model.name": "resnet50",
        "input.batchSize": 9,
        "training.precision": "amp-bf16",
    }
    assert reading.sources["training.precision"] == f"metadata.annotations[{REF}] configmap/a/b"
    assert reading.sources["input.batchSize"] == f"metadata.annotations[{SPEC}]"


def test_a_reference_to_the_hub_names_the_model() -> None:
    """With its revision, and nothing else."""
    annotations = {REF: "hf://gpt2@v1", SPEC: "input: {batchSize: 1}"}
    reading = read(job(container(), annotations=annotations))

    assert found(reading, "model.name", "model.revision") == {
        "model.name": "gpt2",
        "model.revision": "v1",
    }


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("configmap/a/c", "has no key c"),
        ("configmap/gone/b", "is not there"),
        ("secret/a/b", "is none of"),
        ("configmap/a", "is none of"),
        ("x" * 2000, "more than 1024 characters"),
    ],
)
def test_a_reference_that_leads_nowhere_matters_only_if_it_is_needed(
    reference: str, problem: str
) -> None:
    """Beside a job that tells enough it is a warning, else it is why nothing is known."""
    documents = {**config_map("a", b="{}"), "configmap/gone": Document(problem="is not there")}
    annotations = {REF: reference}
    enough = read(job(container(*LINE), annotations=annotations), documents=documents)
    alone = read(job(container(), annotations=annotations), documents=documents)

    assert enough.spec is not None
    assert any(problem in warning for warning in enough.warnings)
    assert codes(alone) == [ReasonCode.DOCUMENT, ReasonCode.NO_COMMAND]


@pytest.mark.parametrize("command", [("sleep", "1"), ("nvidia-smi",), ("python", "own.py")])
def test_a_reference_that_comes_late_is_the_reason_whatever_the_command_says(
    command: tuple[str, ...],
) -> None:
    """Whoever wrote it trains something: it is neither idle nor without a command."""
    documents = {"configmap/a": Document(problem="is not there")}
    reading = read(
        job(container(*command), annotations={REF: "configmap/a/b"}), documents=documents
    )

    assert reading.skip is None
    assert reading.unknowns[0].code == ReasonCode.DOCUMENT
    assert reading.unknowns[0].path == f"metadata.annotations[{REF}] configmap/a/b"
    assert reading.unknowns[0].reason == "what it refers to is not there"


def test_mistakes_of_the_owner_come_before_a_reference_that_is_late() -> None:
    """They stay when it comes."""
    documents = {"configmap/a": Document(problem="is not there")}
    annotations = {REF: "configmap/a/b", SPEC: "input: {batchSize: many}"}
    reading = read(job(container(), annotations=annotations), documents=documents)

    assert codes(reading)[:2] == [ReasonCode.INVALID_SPEC, ReasonCode.DOCUMENT]


def test_numbers_nobody_can_write_out_are_problems() -> None:
    """Fifty thousand digits are a finding, decimal or not."""
    for number in ("9" * 50_000, "0x" + "f" * 50_000):
        stated = f"model: {{source: timm, name: x}}\ninput: {{batchSize: {number}}}"
        reading = read(job(container(), annotations={SPEC: stated}))

        assert ReasonCode.INVALID_SPEC in codes(reading)


def test_documents_nobody_writes_by_hand_are_problems() -> None:
    """Too long, too many values, too deep."""
    for stated in (
        "a: " + "x" * (65 << 10),
        "a: [" + "1," * 3_000 + "]",
        "a: " + "[" * 100 + "]" * 100,
    ):
        reading = read(job(container(*LINE), annotations={SPEC: stated}))

        assert codes(reading) == [ReasonCode.INVALID_SPEC]


def test_null_is_a_word_of_the_owner() -> None:
    """`adapter: null` says that there is none."""
    words = ("python", "run_clm.py", "--do_train", "--model_name_or_path=org/a", "--lora_r=8")
    reading = read(job(container(*words), annotations={SPEC: "adapter: null"}))

    assert reading.spec is not None
    assert reading.spec.adapter is None
