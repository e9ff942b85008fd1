"""Programs that take a file: LLM Foundry, GPT-NeoX, Lightning CLI."""

from __future__ import annotations

import pytest

from admission.codes import ReasonCode
from tests.admission.detect.jobs import codes, found, read_args, read_with_files

STEPS = "training.gradientAccumulationSteps"
CONFIG = "model.config"
FOUNDRY = """
variables:
  max_seq_len: 1024
max_seq_len: ${variables.max_seq_len}
model:
  name: mpt_causal_lm
  d_model: 512
  n_heads: 8
  n_layers: 4
  expansion_ratio: 4
  max_seq_len: ${max_seq_len}
  vocab_size: 50368
optimizer:
  name: decoupled_adamw
algorithms:
  gradient_clipping:
    clipping_threshold: 1.0
global_train_batch_size: 64
device_train_microbatch_size: 4
precision: amp_bf16
fsdp_config:
  sharding_strategy: SHARD_GRAD_OP
  mixed_precision: PURE
  activation_checkpointing: true
"""
NEOX = """
{
  # settings
  "pipe_parallel_size": 0,
  "model_parallel_size": 2,
  "num_layers": 12,
  "hidden_size": 768,
  "num_attention_heads": 12,
  "seq_length": 2048,
  "pos_emb": "rotary",
  "no_weight_tying": true,
  "train_micro_batch_size_per_gpu": 4,
  "gradient-accumulation-steps": 2,
  "zero_optimization": {"stage": 1},
  "checkpoint-activations": True,
  "bf16": {"enabled": true},
  "optimizer": {"type": "Adam", "params": {"lr": 0.0002}},
}
"""
LIGHTNING = """
trainer:
  devices: 4
  num_nodes: 2
  precision: bf16-mixed
  strategy: deepspeed_stage_3_offload
  accumulate_grad_batches: 3
model:
  class_path: own.Module
  init_args:
    model_name_or_path: org/model
data:
  init_args:
    batch_size: 16
optimizer:
  class_path: torch.optim.SGD
"""


def test_llm_foundry_with_references_in_its_file() -> None:
    """An MPT by its dimensions; 64 over 8 GPUs are two micro-batches of 4."""
    reading = read_with_files(
        "composer -n 8 train/train.py /c/mpt.yaml model.n_layers=6", gpus=8, mpt__yaml=FOUNDRY
    )

    assert reading.spec is not None
    assert found(
        reading,
        f"{CONFIG}.n_layers",
        "input.batchSize",
        "input.sequenceLength",
        STEPS,
        "training.precision",
        "training.gradientCheckpointing",
        "parallelism.strategy",
        "parallelism.reshardAfterForward",
        "parallelism.mixedPrecision",
        "parallelism.dataParallel",
    ) == {
        f"{CONFIG}.n_layers": 6,
        "input.batchSize": 4,
        "input.sequenceLength": 1024,
        STEPS: 2,
        "training.precision": "amp-bf16",
        "training.gradientCheckpointing": "full",
        "parallelism.strategy": "fsdp",
        "parallelism.reshardAfterForward": False,
        "parallelism.mixedPrecision": {"param": "bf16", "reduce": "bf16"},
        "parallelism.dataParallel": 8,
    }


@pytest.mark.parametrize(
    ("pair", "code"),
    [
        ("device_train_microbatch_size=auto", ReasonCode.NO_BATCH),
        ("device_train_microbatch_size=0", ReasonCode.NO_BATCH),
        ("model.name=own_model", ReasonCode.NO_MODEL),
        ("model.d_model=${elsewhere}", ReasonCode.TEMPLATE),
        ("precision=amp_fp4", ReasonCode.UNSUPPORTED),
    ],
)
def test_what_of_foundry_cannot_be_read_is_named(pair: str, code: ReasonCode) -> None:
    """A batch that fits itself to the card is no batch."""
    reading = read_with_files(f"composer train/train.py /c/m.yaml {pair}", m__yaml=FOUNDRY)

    assert reading.spec is None
    assert code in codes(reading)


def test_gpt_neox_merges_its_files() -> None:
    """The folder and the ending may be left out; 8 GPUs over 2 are 4 replicas."""
    reading = read_with_files(
        "python ./deepy.py train.py -d /c model local.yml",
        gpus=8,
        model__yml=NEOX,
        local__yml='{"padded_vocab_size": 50304}',
    )

    assert reading.spec is not None
    assert found(
        reading,
        f"{CONFIG}.model_type",
        f"{CONFIG}.intermediate_size",
        f"{CONFIG}.vocab_size",
        "input.batchSize",
        STEPS,
        "training.precision",
        "training.gradientCheckpointing",
        "parallelism.strategy",
        "parallelism.tensorParallel",
        "parallelism.dataParallel",
    ) == {
        f"{CONFIG}.model_type": "gpt_neox",
        f"{CONFIG}.intermediate_size": 4 * 768,
        f"{CONFIG}.vocab_size": 50304,
        "input.batchSize": 4,
        STEPS: 2,
        "training.precision": "bf16",
        "training.gradientCheckpointing": {"mode": "full", "every": 1},
        "parallelism.strategy": "zero1",
        "parallelism.tensorParallel": 2,
        "parallelism.dataParallel": 4,
    }


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("python deepy.py train.py /c/other.yml", NEOX),
        ("python deepy.py train.py /c/model.yml", "a: [1"),
        ("python deepy.py train.py /c/model.yml", "num_layers: null"),
        ("python deepy.py train.py /c/model.yml", NEOX),
        ("python deepy.py train.py", NEOX),
    ],
)
def test_what_of_neox_cannot_be_read_is_named(line: str, text: str) -> None:
    """A file that is missing or broken, and a vocabulary that only a tokenizer tells."""
    reading = read_with_files(line, model__yml=text)

    assert reading.spec is None
    assert reading.unknowns


def test_lightning_settings_are_read_and_the_module_is_doubted() -> None:
    """Lightning starts 4 * 2 processes itself; the module's own code is not seen."""
    reading = read_with_files(
        "python main.py fit --config /c/x.yaml --trainer.devices=4", gpus=4, x__yaml=LIGHTNING
    )

    assert reading.spec is not None
    assert not reading.is_certain
    assert found(
        reading,
        "model.name",
        "input.batchSize",
        STEPS,
        "training.precision",
        "training.optimizer.name",
        "parallelism.strategy",
        "parallelism.dataParallel",
        "parallelism.offload",
    ) == {
        "model.name": "org/model",
        "input.batchSize": 16,
        STEPS: 3,
        "training.precision": "amp-bf16",
        "training.optimizer.name": "sgd",
        "parallelism.strategy": "zero3",
        "parallelism.dataParallel": 8,
        "parallelism.offload": "optimizer",
    }


@pytest.mark.parametrize(
    "flags", ["--trainer.devices=$N", "--trainer.strategy=own", "--model.class_path=own.Other"]
)
def test_what_of_lightning_cannot_be_read_is_named(flags: str) -> None:
    """A number that is not resolved, a strategy or a module of one's own."""
    reading = read_args("python", "main.py", "fit", "--data.batch_size=8", flags, gpus=2)

    assert reading.spec is None
    assert reading.unknowns
