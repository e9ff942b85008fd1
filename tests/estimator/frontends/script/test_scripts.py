"""Scripts as people write them, run on stand-ins: what they need is what their JobSpec needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig, GPT2Config

from estimator.frontends import load
from estimator.notes import UnknownCode
from estimator.spec import parse_spec
from estimator.trace import Role, Trace
from estimator.traits import traits_of
from tests.estimator.frontends.script.scripts import (
    ACCELERATE,
    CARD,
    DISTRIBUTED,
    EVALUATING,
    GENERATING,
    IMAGES,
    LORA,
    STOPPING,
    TRAINER,
    allocations,
    job,
    peak,
    run,
    script_at,
    traced,
)

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def by_spec(**parts: Any) -> Trace:
    """Return the trace of a JobSpec."""
    spec = parse_spec({"framework": "pytorch", **parts})
    return load(spec.framework).trace_job(spec, traits=traits_of(CARD))


def config_of(config: Any) -> dict[str, Any]:
    """Return a configuration as a Hub's config.json has it."""
    found: dict[str, Any] = json.loads(json.dumps(config.to_dict()))
    return {**found, "model_type": config.model_type}


@pytest.mark.parametrize(("flag", "precision"), [((), "fp32"), (("--amp",), "amp-fp16")])
def test_a_loop_over_images_allocates_what_its_spec_does(
    tmp_path: Path, flag: tuple[str, ...], precision: str
) -> None:
    """Event for event but for the loss scale's numbers; the peak is the same to the byte."""
    script = run(script_at(tmp_path, IMAGES), "--batch", "16", *flag)

    expected = by_spec(
        model={"source": "torchvision", "name": "resnet18"},
        input={"batchSize": 16, "imageSize": [3, 64, 64]},
        training={"precision": precision, "optimizer": {"name": "sgd", "momentum": 0.9}},
    )
    trace = traced(script)
    assert allocations(trace) == allocations(expected)
    assert [k for k in trace.kernels if k not in expected.kernels] == []
    assert peak(trace) == peak(expected)
    assert trace.parameters == expected.parameters
    read = job(script)
    assert (read.input.batch_size, read.input.image_size) == (16, (3, 64, 64))
    assert (read.training.precision, read.training.optimizer.name) == (precision, "sgd")


def test_the_trainer_of_transformers_needs_what_its_spec_does(tmp_path: Path) -> None:
    """bf16 autocast, fused AdamW, clipping: the masks of a few kilobytes are all that differs."""
    text = TRAINER.replace("OUT", str(tmp_path / "out"))

    script = run(script_at(tmp_path, text))

    expected = by_spec(
        model={
            "source": "huggingface",
            "name": "b",
            "task": "sequence-classification",
            "config": config_of(BertConfig(num_hidden_layers=2)),
            "numLabels": 2,
        },
        input={"batchSize": 8, "sequenceLength": 128},
        training={
            "precision": "amp-bf16",
            "clipGradNorm": True,
            "outputDtype": "fp32",
            "zeroGrad": {"position": "after-step"},
            "optimizer": {"name": "adamw", "fused": True},
        },
    )
    assert peak(traced(script)) == pytest.approx(peak(expected), abs=64 << 10)
    assert job(script).training.precision == "amp-bf16"
    assert job(script).input.sequence_length == 128


def test_a_loop_of_accelerate_needs_what_its_spec_does(tmp_path: Path) -> None:
    """Accumulated, clipped, outputs in fp32 that the loop does not keep."""
    script = run(script_at(tmp_path, ACCELERATE))

    expected = by_spec(
        model={
            "source": "huggingface",
            "name": "g",
            "task": "causal-lm",
            "config": config_of(GPT2Config(n_layer=2)),
        },
        input={"batchSize": 4, "sequenceLength": 128},
        training={
            "precision": "amp-bf16",
            "clipGradNorm": True,
            "outputDtype": "fp32",
            "keepOutputs": False,
            "gradientAccumulationSteps": 2,
            "zeroGrad": {"position": "after-step"},
        },
    )
    assert peak(traced(script)) == pytest.approx(peak(expected), rel=0.01)
    assert job(script).training.gradient_accumulation_steps == 2


def test_adapters_of_peft_on_a_model_by_name_need_what_their_spec_does(tmp_path: Path) -> None:
    """`from_pretrained` builds the model of the catalog's configuration, without weights."""
    script = run(script_at(tmp_path, LORA))

    expected = by_spec(
        model={"source": "huggingface", "name": "gpt2"},
        input={"batchSize": 2, "sequenceLength": 256},
        training={
            "precision": "bf16",
            "gradientCheckpointing": "full",
            "zeroGrad": {"position": "after-step"},
        },
        adapter={"type": "lora", "rank": 8, "targetModules": ["c_attn"]},
    )
    assert peak(traced(script)) == pytest.approx(peak(expected), rel=0.001)
    assert job(script).training.precision == "bf16"


def test_numbers_that_are_read_are_zero_and_where_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Early stopping, metrics and prints go on; an evaluation ends after two batches."""
    monkeypatch.chdir(tmp_path)

    script = run(script_at(tmp_path, STOPPING))

    notes = {note.path: note for note in traced(script).assumptions}
    assert notes["script.values"].value == "0"
    assert "train.py:25, train.py:37" in notes["script.values"].reason
    assert "two batches" in notes["script.evaluation"].reason
    assert job(script).input.batch_size == 32
    assert Role.INPUT in traced(script).roles


def test_a_rank_of_several_has_its_buckets_and_compiling_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process group is there without the other ranks; weights are not downloaded."""
    for name, value in (("WORLD_SIZE", "4"), ("RANK", "1"), ("LOCAL_RANK", "0")):
        monkeypatch.setenv(name, value)

    script = run(script_at(tmp_path, DISTRIBUTED))

    trace = traced(script)
    parallel = job(script).parallelism
    assert (parallel.strategy, parallel.data_parallel) == ("ddp", 4)
    sizes = zip(trace.sizes, trace.roles, strict=True)
    buckets = [size for size, role in sizes if role == Role.COMMUNICATION]
    assert sum(buckets) == 4 * trace.parameters
    assert [note.code for note in trace.unknowns] == [UnknownCode.FEATURE]
    assert "torch.compile at train.py" in trace.unknowns[0].reason


def test_an_evaluation_is_cut_once_its_calls_repeat(tmp_path: Path) -> None:
    """It is `phase: infer`, in the precision of its weights."""
    script = run(script_at(tmp_path, EVALUATING))

    read = job(script)
    assert (read.phase, read.training.precision, read.input.batch_size) == ("infer", "fp16", 16)


def test_a_generation_is_run_to_its_length(tmp_path: Path) -> None:
    """Its cache grows to the end; the loop around it is cut."""
    script = run(script_at(tmp_path, GENERATING), steps=1)

    assert job(script).phase == "infer"
    assert peak(traced(script)) > 2 * traced(script).parameters


def test_relative_imports_and_modules_beside_the_script_are_found(tmp_path: Path) -> None:
    """A script inside a package runs as a part of it; it may be endless."""
    package = tmp_path / "mypackage"
    package.mkdir()
    script_at(package, "", "__init__.py")
    script_at(package, "from torch import nn\ndef make(): return nn.Linear(64, 10)\n", "net.py")
    script_at(package, "BATCH = 32\n", "settings_of_mine.py")
    text = """
        import torch
        from settings_of_mine import BATCH
        from .net import make

        model = make().cuda()
        optimizer = torch.optim.Adam(model.parameters())
        while True:
            try:
                loss = model(torch.randn(BATCH, 64, device="cuda")).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            except Exception:
                pass
    """

    script = run(script_at(package, text))

    assert job(script).input.batch_size == 32
    assert traced(script).parameters == 64 * 10 + 10
