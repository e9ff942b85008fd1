"""Programs on Megatron core: Megatron-LM, Megatron-Bridge, NeMo 1."""

from __future__ import annotations

import pytest

from admission.codes import ReasonCode
from admission.values import Document
from tests.admission.detect.jobs import (
    codes,
    container,
    found,
    job,
    read,
    read_args,
    read_script,
    read_with_files,
)

LAUNCH = ("torchrun", "--nproc_per_node=8")
DIMS = ("--num-layers=32", "--hidden-size=4096", "--num-attention-heads=32")
GPT = (*LAUNCH, "pretrain_gpt.py", *DIMS, "--seq-length=4096", "--micro-batch-size=1")
BRIDGE = (*LAUNCH, "scripts/performance/run_script.py", "--gpu", "h100")
NEMO = (*LAUNCH, "megatron_gpt_pretraining.py")
STEPS = "training.gradientAccumulationSteps"
CONFIG = "model.config"
DEGREES = (
    "parallelism.tensorParallel",
    "parallelism.pipelineParallel",
    "parallelism.virtualStages",
    "parallelism.dataParallel",
)


def test_a_llama_by_its_dimensions() -> None:
    """SwiGLU and grouped queries make a llama; the rest follows as `validate_args` has it."""
    reading = read_args(
        *GPT,
        "--swiglu",
        "--group-query-attention",
        "--num-query-groups=8",
        "--disable-bias-linear",
        "--untie-embeddings-and-output-weights",
        "--vocab-size=32001",
        "--bf16",
        gpus=8,
    )

    assert reading.spec is not None
    assert found(
        reading,
        f"{CONFIG}.model_type",
        f"{CONFIG}.intermediate_size",
        f"{CONFIG}.num_key_value_heads",
        f"{CONFIG}.tie_word_embeddings",
        f"{CONFIG}.vocab_size",
        "training.precision",
        "training.masterWeights",
        "training.optimizer.name",
        "training.gradientCheckpointing",
        STEPS,
    ) == {
        f"{CONFIG}.model_type": "llama",
        f"{CONFIG}.intermediate_size": int(4 * 4096 * 2 / 3) // 64 * 64,
        f"{CONFIG}.num_key_value_heads": 8,
        f"{CONFIG}.tie_word_embeddings": False,
        f"{CONFIG}.vocab_size": 251 * 128,
        "training.precision": "bf16",
        "training.masterWeights": True,
        "training.optimizer.name": "adam",
        "training.gradientCheckpointing": "none",
        STEPS: 1,
    }


def test_degrees_and_accumulation_follow_from_the_processes() -> None:
    """32 processes over 2 * 4 leave 4 replicas, which share 64 sequences one by one."""
    reading = read_args(
        "torchrun",
        "--nproc_per_node=8",
        "--nnodes=4",
        *GPT[2:],
        "--tensor-model-parallel-size=2",
        "--pipeline-model-parallel-size=4",
        "--num-layers-per-virtual-pipeline-stage=2",
        "--global-batch-size=64",
        "--use-distributed-optimizer",
        "--sequence-parallel",
        gpus=8,
    )

    assert found(
        reading, *DEGREES, STEPS, "parallelism.microBatches", "parallelism.distributedOptimizer"
    ) == {
        "parallelism.tensorParallel": 2,
        "parallelism.pipelineParallel": 4,
        "parallelism.virtualStages": 32 // 4 // 2,
        "parallelism.dataParallel": 32 // (2 * 4),
        STEPS: 64 // 4,
        "parallelism.microBatches": 64 // 4,
        "parallelism.distributedOptimizer": True,
    }


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--recompute-activations",), {"mode": "selective", "policy": "core_attn"}),
        (("--recompute-granularity=full",), {"mode": "full"}),
        (
            ("--recompute-granularity=selective", "--recompute-modules", "mlp", "moe"),
            {"mode": "selective", "policy": "mlp+moe"},
        ),
        (("--checkpoint-activations",), "full"),
    ],
)
def test_recomputation(flags: tuple[str, ...], expected: object) -> None:
    """Which activations are computed again, and of which parts."""
    reading = read_args(*GPT, *flags, gpus=8)

    path = "training.gradientCheckpointing"
    assert found(reading, path) == {path: expected}


@pytest.mark.parametrize(
    ("flags", "strategy"),
    [((), "ddp"), (("--zero-stage=1",), "zero1"), (("--use-torch-fsdp2",), "fsdp")],
)
def test_strategies(flags: tuple[str, ...], strategy: str) -> None:
    """Plain replicas, the DeepSpeed variant's stages, or FSDP."""
    reading = read_args(*GPT, "--padded-vocab-size=50304", *flags, gpus=8)

    assert found(reading, "parallelism.strategy") == {"parallelism.strategy": strategy}


def test_a_vocabulary_in_a_tokenizer_file_is_a_gap() -> None:
    """Everything else is known; only the tokenizer's files tell how large the vocabulary is."""
    reading = read_args(*GPT, "--vocab-file=/data/gpt2-vocab.json", gpus=8)

    assert [finding.reason for finding in reading.unknowns] == [
        "how large the vocabulary is stands in the tokenizer's files"
    ]


def test_a_tokenizer_of_the_hub_bounds_the_vocabulary() -> None:
    """Its model's embedding is at least as large; one that is not known is asked for."""
    path = f"{CONFIG}.vocab_size"
    hub = (*GPT, "--tokenizer-type=HuggingFaceTokenizer")

    known = read_args(*hub, "--tokenizer-model=meta-llama/Llama-3.1-8B", gpus=8)
    asked = job(container(*hub, "--tokenizer-model=org/unheard-of", gpus=8))
    stored = Document(files={"config.json": '{"vocab_size": 1000}'})

    assert found(known, path) == {path: 128256}
    assert not known.is_certain
    assert read(asked).wanted == ("hf://org/unheard-of@main",)
    answered = read(asked, documents={"hf://org/unheard-of@main": stored})
    assert found(answered, path) == {path: 8 * 128}


@pytest.mark.parametrize(
    "flags",
    [("--tensor-model-parallel-size=3",), ("--tensor-model-parallel-size=$TP",)],
)
def test_degrees_that_do_not_divide_or_resolve_are_named(flags: tuple[str, ...]) -> None:
    """No number of replicas is made up."""
    reading = read_args(*GPT, "--padded-vocab-size=50304", *flags, gpus=8)

    assert reading.spec is None
    assert found(reading, "parallelism.dataParallel") == {"parallelism.dataParallel": None}


def test_dimensions_in_a_checkpoint_are_a_gap() -> None:
    """`--use-checkpoint-args` takes them from files that only the container sees."""
    reading = read_args(*GPT, "--use-checkpoint-args", gpus=8)

    assert ReasonCode.NO_MODEL in codes(reading)


def test_a_bridge_recipe_with_its_preset() -> None:
    """What no flag says is in the preset of recipe, card and precision."""
    reading = read_script(
        "pip install megatron-bridge==0.3.0 && "
        + " ".join((*BRIDGE, "--model_recipe_name", "llama3_70b", "--num_gpus", "64", "-mb 2")),
        gpus=8,
    )

    assert found(reading, "model.name", "input.batchSize", "input.sequenceLength", *DEGREES) == {
        "model.name": "meta-llama/Meta-Llama-3-70B",
        "input.batchSize": 2,
        "input.sequenceLength": 8192,
        "parallelism.tensorParallel": 4,
        "parallelism.pipelineParallel": 4,
        "parallelism.virtualStages": 5,
        "parallelism.dataParallel": None,
    }


def test_flags_of_older_bridge_releases() -> None:
    """Before 0.3 a model and its size were two flags; the preset cuts the context in two."""
    reading = read_args(
        *BRIDGE, "--model_name", "llama3", "--model_size", "8b", "-tp", "1", "-mb", "1", gpus=8
    )

    assert found(reading, "model.name", "input.batchSize", "parallelism.dataParallel") == {
        "model.name": "meta-llama/Meta-Llama-3-8B",
        "input.batchSize": 1,
        "parallelism.dataParallel": 8 // 2,
    }


@pytest.mark.parametrize("name", ["made_up_9b", "$RECIPE", ""])
def test_unknown_bridge_recipes_are_named(name: str) -> None:
    """A recipe that is not in the table is no guess at a model."""
    reading = read_args(*BRIDGE, f"--model_recipe_name={name}", gpus=8)

    assert reading.spec is None
    assert found(reading, "model.name") == {"model.name": None}


def test_nemo_1_overrides() -> None:
    """Hydra's overrides over the example's own file, through Megatron's reader."""
    reading = read_args(
        *NEMO,
        "model.num_layers=24",
        "model.micro_batch_size=2",
        "++model.global_batch_size=64",
        "model.tensor_model_parallel_size=2",
        "trainer.precision=bf16",
        "model.megatron_amp_O2=True",
        "model.optim.name=distributed_fused_adam",
        gpus=8,
    )

    assert found(
        reading,
        f"{CONFIG}.n_layer",
        f"{CONFIG}.n_embd",
        "input.batchSize",
        "input.sequenceLength",
        STEPS,
        "training.precision",
        "training.optimizer",
        "parallelism.distributedOptimizer",
    ) == {
        f"{CONFIG}.n_layer": 24,
        f"{CONFIG}.n_embd": 768,
        "input.batchSize": 2,
        "input.sequenceLength": 512,
        STEPS: 64 // (2 * 4),
        "training.precision": "bf16",
        "training.optimizer": {"name": "adam", "fused": True},
        "parallelism.distributedOptimizer": True,
    }


def test_nemo_1_without_a_launcher_counts_its_own_devices() -> None:
    """`trainer.devices` and `trainer.num_nodes` say how many processes there are."""
    reading = read_args("python", NEMO[-1], "trainer.devices=8", "trainer.num_nodes=2", gpus=8)

    assert found(reading, "parallelism.dataParallel") == {"parallelism.dataParallel": 16}


def test_nemo_1_files_refer_to_themselves() -> None:
    """`${.encoder_seq_length}` is a key beside it; findings name the field of the command line."""
    text = """
trainer: {devices: 8, precision: bf16}
model:
  micro_batch_size: 1
  global_batch_size: 16
  encoder_seq_length: 4096
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 8
  hidden_size: 1024
  num_attention_heads: 8
  activation: fast-swiglu
  megatron_amp_O2: true
  optim: {name: mcore_distributed_optim}
"""
    reading = read_with_files(
        f"{' '.join(NEMO)} --config-path=/c --config-name=nemo", gpus=8, nemo__yaml=text
    )

    assert found(
        reading,
        f"{CONFIG}.model_type",
        f"{CONFIG}.max_position_embeddings",
        "training.optimizer",
        "parallelism.distributedOptimizer",
        STEPS,
    ) == {
        f"{CONFIG}.model_type": "llama",
        f"{CONFIG}.max_position_embeddings": 4096,
        "training.optimizer": {"name": "adam"},
        "parallelism.distributedOptimizer": True,
        STEPS: 16 // 8,
    }
    assert {finding.path for finding in reading.unknowns} == {
        "spec.template.spec.containers[0].args"
    }
