"""torchtune: shipped configurations by release, files of one's own, overrides."""

from __future__ import annotations

import pytest

from admission.codes import ReasonCode
from admission.detect.recipes.tables import load_table
from admission.detect.scripts.optimizer_classes import optimizer_of_class
from tests.admission.detect.jobs import codes, found, read_args, read_script, read_with_files

MODULE = ("python", "-m", "torchtune.lora_finetune_single_device")
FULL = ("torchrun", "--nproc_per_node=2", "-m", "torchtune.full_finetune_distributed")
OWN = """
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_1b
  lora_attn_modules: [q_proj, output_proj]
  apply_lora_to_mlp: false
  lora_rank: 32
  lora_alpha: 64
length: 1024
tokenizer:
  max_seq_len: ${length}
batch_size: 6
gradient_accumulation_steps: 2
optimizer:
  _component_: bitsandbytes.optim.PagedAdamW8bit
dtype: bf16
enable_activation_checkpointing: true
"""


def test_a_shipped_configuration_tells_everything() -> None:
    """The values are those of the file in the newest release; FSDP by the recipe's name."""
    reading = read_args(*FULL, "--config", "qwen2_5/1.5B_full", gpus=2)

    assert reading.spec is not None
    assert found(
        reading,
        "model.name",
        "input.batchSize",
        "input.sequenceLength",
        "training.precision",
        "training.gradientCheckpointing",
        "parallelism.strategy",
        "parallelism.dataParallel",
        "adapter",
    ) == {
        "model.name": "Qwen/Qwen2.5-1.5B-Instruct",
        "input.batchSize": 2,
        "input.sequenceLength": None,
        "training.precision": "bf16",
        "training.gradientCheckpointing": "full",
        "parallelism.strategy": "fsdp",
        "parallelism.dataParallel": 2,
        "adapter": None,
    }


def test_overrides_win_and_quantised_bases_are_read() -> None:
    """`k=v` stands over the file; a qlora configuration has a 4-bit base."""
    reading = read_args(
        *MODULE,
        "--config",
        "llama3_1/8B_qlora_single_device",
        "batch_size=1",
        "tokenizer.max_seq_len=2048",
        "model.lora_attn_modules=[q_proj,v_proj]",
    )

    assert found(
        reading,
        "input.batchSize",
        "input.sequenceLength",
        "adapter.rank",
        "adapter.targetModules",
        "quantization.bits",
        "quantization.doubleQuant",
        "parallelism.strategy",
    ) == {
        "input.batchSize": 1,
        "input.sequenceLength": 2048,
        "adapter.rank": 8,
        "adapter.targetModules": ["q_proj", "v_proj", "gate_proj", "up_proj", "down_proj"],
        "quantization.bits": 4,
        "quantization.doubleQuant": True,
        "parallelism.strategy": "none",
    }


def test_the_release_decides() -> None:
    """The same name has another accumulation in 0.3.1 than in the releases after it."""
    line = "pip install torchtune=={} && " + " ".join(MODULE)
    name = " --config code_llama2/7B_lora_single_device"
    steps = "training.gradientAccumulationSteps"

    old = read_script(line.format("0.3.1") + name)
    new = read_script(line.format("0.6.1") + name)

    assert found(old, steps) == {steps: 16}
    assert found(new, steps) == {steps: 8}
    assert "torchtune 0.3.1" in old.sources[steps]


def test_a_configuration_of_a_later_release_is_named() -> None:
    """A pinned release that lacks the configuration cannot run it."""
    reading = read_script(
        "pip install torchtune==0.3.1 && " + " ".join(FULL) + " --config phi4/14B_full", gpus=2
    )

    assert reading.spec is None
    assert any("has no configuration phi4/14B_full" in found.reason for found in reading.unknowns)


def test_a_file_of_ones_own_is_read() -> None:
    """A YAML file in a ConfigMap, with references inside it."""
    reading = read_with_files(" ".join(MODULE) + " --config /c/own.yaml", own__yaml=OWN)

    assert found(
        reading,
        "model.name",
        "input.batchSize",
        "input.sequenceLength",
        "training.optimizer",
        "adapter.rank",
        "adapter.alpha",
        "adapter.targetModules",
        "quantization",
    ) == {
        "model.name": "meta-llama/Llama-3.2-1B-Instruct",
        "input.batchSize": 6,
        "input.sequenceLength": 1024,
        "training.optimizer": {"name": "adamw", "paged": True, "bits": 8},
        "adapter.rank": 32,
        "adapter.alpha": 64,
        "adapter.targetModules": ["q_proj", "o_proj"],
        "quantization": None,
    }


def test_every_shipped_configuration_can_be_read() -> None:
    """Each names a model builder that is known, and a batch."""
    table = load_table("torchtune_configs")
    missing = []
    for name, rows in table["configs"].items():
        values = rows[-1][1]
        if values is None or "ppo" in name or "reward" in name:
            continue
        recipe = "lora_finetune_single_device"
        reading = read_args("python", "-m", f"torchtune.{recipe}", "--config", name)
        if reading.spec is None:
            missing.append(name)

    assert missing == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--config", "my/own"), ReasonCode.DOCUMENT),
        (("--config", "$CONFIG"), ReasonCode.TEMPLATE),
        (("--config", "llama2/7B_lora_single_device", "batch_size=null"), ReasonCode.NO_BATCH),
        (("--config", "llama2/7B_lora_single_device", "batch_size=many"), ReasonCode.NO_BATCH),
        (("--config", "llama2/7B_lora_single_device", "model=mine.build"), ReasonCode.NO_MODEL),
        (("--config", "llama2/7B_lora_single_device", "dtype=int3"), ReasonCode.UNSUPPORTED),
        ((), ReasonCode.NO_MODEL),
    ],
)
def test_what_cannot_be_read_is_named(arguments: tuple[str, ...], code: ReasonCode) -> None:
    """A file that is not seen or a value nobody knows is a finding."""
    reading = read_args(*MODULE, *arguments)

    assert reading.spec is None
    assert code in codes(reading)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch.optim.AdamW", {"name": "adamw"}),
        ("bitsandbytes.optim.PagedAdamW", {"name": "adamw", "paged": True}),
        ("bitsandbytes.optim.AdamW8bit", {"name": "adamw", "bits": 8}),
        ("FusedAdam", {"name": "adam", "fused": True}),
        ("decoupled_adamw", {"name": "adamw"}),
        ("", {"name": "other"}),
    ],
)
def test_optimizers_are_told_by_their_class(name: str, expected: dict[str, object]) -> None:
    """The package does not matter."""
    assert optimizer_of_class(name) == expected
