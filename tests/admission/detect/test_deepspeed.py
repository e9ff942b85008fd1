"""A DeepSpeed configuration becomes values of the spec, or a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission.detect.deepspeed import DeepSpeed, deepspeed_of, put_deepspeed, read_deepspeed
from admission.detect.draft import Draft
from admission.detect.files import File
from tests.admission.detect.jobs import found, read_with_files

WHOLE = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "bf16": {"enabled": True},
    "gradient_clipping": 1.0,
    "optimizer": {"type": "Adam", "params": {"lr": 1e-5}},
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {"device": "cpu"},
        "offload_param": {"device": "none"},
        "reduce_bucket_size": 5e7,
        "allgather_bucket_size": "auto",
        "stage3_prefetch_bucket_size": 1000,
        "zero_hpz_partition_size": 8,
    },
}


def _draft(document: dict[str, Any], *, world: int | None = None, **values: object) -> Draft:
    draft = Draft()
    for path, value in values.items():
        draft.put(path.replace("__", "."), value, "flag")
    put_deepspeed(draft, deepspeed_of(document, source="ds"), path="args", world=world)
    return draft


def test_what_is_said_is_put() -> None:
    """Stage, offload, buckets, batch, precision and optimizer."""
    assert _draft(WHOLE).document == {
        "parallelism": {
            "strategy": "zero3",
            "implementation": "deepspeed",
            "offload": "optimizer",
            "zero": {"reduceBucketElements": 50_000_000, "prefetchElements": 1000},
            "shardGroup": 8,
        },
        "input": {"batchSize": 4},
        "training": {
            "gradientAccumulationSteps": 2,
            "precision": "bf16",
            "masterWeights": True,
            "optimizer": {"name": "adamw", "fused": True},
            "clipGradNorm": True,
        },
    }


def test_auto_is_nothing() -> None:
    """Who starts DeepSpeed fills it in."""
    document = {
        "train_micro_batch_size_per_gpu": "auto",
        "train_batch_size": "auto",
        "bf16": {"enabled": "auto"},
        "optimizer": {"type": "auto"},
        "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"},
    }

    assert set(_draft(document).sources) == {
        "parallelism.strategy",
        "parallelism.implementation",
    }


@pytest.mark.parametrize(
    ("stage", "strategy"), [({}, "ddp"), ({"stage": 0}, "ddp"), ({"stage": 1}, "zero1")]
)
def test_stages(stage: dict[str, int], strategy: str) -> None:
    """Without a stage, nothing is sharded."""
    assert _draft({"zero_optimization": stage}).get("parallelism.strategy") == strategy


def test_the_batch_of_all_is_shared() -> None:
    """By processes and micro-batches; flags that are set already stay."""
    path, steps = "input.batchSize", "training.gradientAccumulationSteps"

    assert _draft({"train_batch_size": 32}, world=4).get(path) == 32 / 4
    both = {"train_batch_size": 32, "gradient_accumulation_steps": 2}
    assert _draft(both, world=4).get(path) == 32 / 4 / 2
    given = _draft({"train_batch_size": 32}, world=4, input__batchSize=2)
    assert (given.get(path), given.get(steps)) == (2, 32 / 4 / 2)
    assert _draft({"train_batch_size": 33}, world=4).get(path) is None
    assert _draft({"train_batch_size": 32}).get(path) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"a": 1,}',
        '{"a": 1} // no',
        "null",
        "[" * 100_000,
        '{"a": ' + "9" * 10_000 + "}",
        "x" * 300_000,
    ],
)
def test_what_is_no_json_is_named(text: str) -> None:
    """Comments and trailing commas are errors, as they are to a strict reader."""
    found = read_deepspeed(File(path="ds.json", text=text))

    assert found.problem


@pytest.mark.parametrize(
    "document",
    [
        {"zero_optimization": {"stage": 7}},
        {"zero_optimization": {"stage": "three"}},
        {"zero_optimization": {"stage": True}},
        {"zero_optimization": {"stage": 3, "zero_quantized_weights": True}},
    ],
)
def test_what_is_not_read_is_a_gap(document: dict[str, Any]) -> None:
    """Named by its key."""
    draft = _draft(document)

    assert "zero_optimization" in draft.gaps[0].finding.reason


@pytest.mark.parametrize(
    "document",
    [
        {"zero_optimization": None, "bf16": None, "optimizer": []},
        {"zero_optimization": {"stage": 2, "offload_optimizer": "cpu"}, "fp16": True},
        {"train_batch_size": -4, "train_micro_batch_size_per_gpu": 10**30},
        {"gradient_clipping": "1", "gradient_accumulation_steps": 1.5},
        json.loads('{"train_batch_size": NaN, "gradient_clipping": Infinity}'),
    ],
)
def test_values_of_another_kind_are_passed_over(document: dict[str, Any]) -> None:
    """Never an exception, and no batch out of nonsense."""
    assert _draft(document, world=2).get("input.batchSize") is None


def test_a_file_that_is_not_seen_says_why() -> None:
    """The reason is the file's own."""
    found = read_deepspeed(File(path="ds.json", problem="is inside the image"))

    assert found == DeepSpeed(problem="is inside the image")


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        ({"type": "SGD"}, {"name": "sgd"}),
        ({"type": "Lion"}, {"name": "lion"}),
        ({"type": "AdamW"}, {"name": "adamw", "fused": True}),
        ({"type": "AdamW", "params": {"torch_adam": True}}, {"name": "adamw"}),
    ],
)
@pytest.mark.parametrize("flags", ["", " --optim adafactor"])
def test_the_optimizer_of_the_configuration_is_the_one_that_runs(
    optimizer: dict[str, object], expected: dict[str, object], flags: str
) -> None:
    """DeepSpeed builds it: neither the Trainer's default nor --optim counts."""
    reading = read_with_files(
        "deepspeed --num_gpus 2 run_clm.py --model_name_or_path gpt2 --do_train --dataset_name x "
        f"--per_device_train_batch_size 4 --deepspeed /c/ds.json --output_dir /o{flags}",
        gpus=2,
        ds__json=json.dumps({"optimizer": optimizer, "zero_optimization": {"stage": 2}}),
    )

    assert found(reading, "training.optimizer") == {"training.optimizer": expected}
    assert reading.sources["training.optimizer"].endswith("ds.json optimizer.type")
