"""Files that a job mounts: configurations of launchers and trainers, and the Hub's of models.

bytes -> file -> Reading, with every reason in a line
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import orjson

from admission.detect.configs import MAX_KEYS, document_flags, read_config
from admission.detect.deepspeed import read_deepspeed
from admission.detect.files import File
from admission.detect.reading import load_parts
from admission.values import Document, Documents, Reading
from tests.admission.detect.jobs import container, job, read
from tests.fuzz.choices import Choices
from tests.fuzz.files_watch import nothing_outside
from tests.fuzz.shaping import as_json, mutated, written
from tests.fuzz.target import Broken, Target

TRAINED = "run_clm.py --do_train --per_device_train_batch_size 2 --block_size 64"
CLM = f"{TRAINED} --model_name_or_path gpt2"
LINES = (
    ("a.yaml", f"accelerate launch --config_file /c/a.yaml {CLM}"),
    ("ds.json", f"deepspeed {CLM} --deepspeed /c/ds.json"),
    ("x.yml", "axolotl train /c/x.yml"),
    ("t.yaml", "tune run lora_finetune_single_device --config /c/t.yaml"),
    ("l.yaml", "llamafactory-cli train /c/l.yaml"),
    ("t.toml", "torchrun -m torchtitan.train --job.config_file /c/t.toml"),
    ("s.yaml", "trl sft --config /c/s.yaml"),
    ("args.json", "python run_clm.py /c/args.json"),
    ("m.yaml", "composer train/train.py /c/m.yaml"),
    ("y.yml", "yolo train model=/c/y.yml data=coco.yaml"),
)
"""A file, and a command that reads it."""


@cache
def _documents() -> tuple[dict[str, Any], ...]:
    zero = {
        "stage": 3,
        "offload_param": {"device": "cpu"},
        "reduce_bucket_size": 5e8,
        "mics_shard_size": 2,
    }
    deepspeed = {
        "train_batch_size": 16,
        "train_micro_batch_size_per_gpu": "auto",
        "zero_optimization": zero,
        "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "gradient_clipping": 1.0,
    }
    return (
        {
            "distributed_type": "DEEPSPEED",
            "deepspeed_config": {"zero_stage": 3, "offload_param_device": "cpu"},
            "fsdp_config": {"fsdp_version": 2, "fsdp_auto_wrap_policy": "SIZE_BASED_WRAP"},
            "mixed_precision": "bf16",
            "num_machines": 2,
            "num_processes": 4,
        },
        deepspeed,
        {
            "base_model": "NousResearch/Llama-2-7b-hf",
            "adapter": "qlora",
            "load_in_4bit": True,
            "lora_r": 16,
            "lora_target_modules": ["q_proj"],
            "micro_batch_size": 2,
            "sequence_len": 2048,
            "deepspeed": deepspeed,
        },
        {
            "model": {"_component_": "torchtune.models.llama2.lora_llama2_7b", "lora_rank": 8},
            "batch_size": 2,
            "dtype": "bf16",
            "tokenizer": {"max_seq_len": 512},
            "optimizer": {"_component_": "torch.optim.AdamW", "fused": True},
        },
        {
            "model_name_or_path": "gpt2",
            "stage": "sft",
            "finetuning_type": "lora",
            "per_device_train_batch_size": 2,
            "cutoff_len": 512,
            "bf16": True,
            "quantization_bit": 4,
            "output_dir": "/tmp/x",
            "do_train": True,
        },
        {
            "model": {"name": "llama3", "flavor": "8B"},
            "training": {"local_batch_size": 2, "seq_len": 2048},
            "parallelism": {"tensor_parallel_degree": 2},
            "activation_checkpoint": {"mode": "selective"},
        },
        {"nc": 80, "scales": {"n": [0.33, 0.25, 1024]}, "backbone": [[-1, 1, "Conv", [64, 3, 2]]]},
    )


def check_reading(line: str, name: str, text: str, more: Documents) -> Reading:
    """Read a job that runs *line* with a file *name* of *text* in `/c`.

    Raises: Broken.
    """
    mounts = [{"name": "v", "mountPath": "/c"}]
    whole = job(container(*line.split(), gpus=4, volumeMounts=mounts))
    whole["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "c"}}]
    documents = {"configmap/c": Document(files={name: text}), **more}
    with nothing_outside():
        reading = read(whole, documents=documents)
    if reading.spec is None and not reading.unknowns and not reading.wanted:
        raise Broken("no spec, and nothing is said to be unknown")
    if reading.spec is not None:
        reading.spec.digest()
    return reading


def _run_configs(data: bytes) -> None:
    """Give bytes, or a configuration with odd values, to the program that reads such a file."""
    choices = Choices(data)
    name, line = choices.pick(LINES)
    if choices.byte() % 2:
        text = data[2:].decode("utf-8", "replace")
        _pieces(name, text)
        check_reading(line, name, text, {})
        return
    document = mutated(choices.pick(_documents()), choices, donors=_documents())
    check_reading(line, name, _written(document, name), {})


def _pieces(name: str, text: str) -> None:
    """Read *text* by itself, as every reader of such files does first."""
    file = File(path=name, text=text, source="configmap c/x")
    with nothing_outside():
        config = read_config(file)
        flags = document_flags(config.document, told_by="x", path="spec.containers[0].args")
        if len(flags.given) > MAX_KEYS:
            raise Broken(f"{len(flags.given)} flags of one file")
        read_deepspeed(file)


def _written(document: Any, name: str) -> str:
    if name.endswith(".yml") or name.endswith(".yaml"):
        return written([document])
    if name.endswith(".toml") and isinstance(document, dict):
        return "\n".join(_toml_lines(document))
    return as_json(document)


def _toml_lines(document: dict[Any, Any]) -> Iterable[str]:
    """Yield *document* as TOML, more or less: of two levels, and other values as JSON."""
    for key, value in document.items():
        if isinstance(value, dict):
            yield f"[{key}]"
            yield from (f"{name} = {as_json(item)}" for name, item in value.items())
        else:
            yield f"{key} = {as_json(value)}"


# ---- what the Hub says of a model


@cache
def _hub_files() -> tuple[dict[str, Any], ...]:
    llama = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "vocab_size": 1000,
        "torch_dtype": "bfloat16",
        "quantization_config": {"quant_method": "gptq", "bits": 4},
    }
    adapter = {"base_model_name_or_path": "org/base", "peft_type": "LORA", "r": 8}
    return (
        {"config.json": llama, "safetensors": {"parameters": {"BF16": 1000, "F32": 10}}},
        {"adapter_config.json": adapter},
    )


def _run_hub_files(data: bytes) -> None:
    """Change what the Hub says of a model, and read a job that trains it."""
    choices = Choices(data)
    if choices.byte() % 2:
        files = {"config.json": data[1:].decode("utf-8", "replace")}
    else:
        changed = mutated(choices.pick(_hub_files()), choices, donors=_hub_files())
        files = {
            str(name): value if isinstance(value, str) else as_json(value)
            for name, value in (changed.items() if isinstance(changed, dict) else ())
        }
    documents = {"hf://org/x@main": Document(files=files)}
    flags = choices.pick(("", "--bf16 True", "--torch_dtype auto", "--gradient_checkpointing"))
    check_reading(f"python {TRAINED} --model_name_or_path org/x {flags}", "none", "", documents)


# ---- seeds


def _config_seeds() -> Iterable[bytes]:
    load_parts()
    for index, (name, _) in enumerate(LINES):
        for number, document in enumerate(_documents()):
            yield bytes((index, 1)) + _written(document, name).encode()
            yield bytes((index, 0, number, 2, number, 3, 5, 7, number * 9, 1, 2))
    yield b"\x00\x01a: &a [1]\nb: [*a, *a]\n<<: *a\n"
    yield b"\x00\x01" + b"\n".join(
        [b"a0: &a0 [1]"] + [b"a%d: &a%d [*a%d, *a%d]" % (n, n, n - 1, n - 1) for n in range(1, 40)]
    )


def _hub_seeds() -> Iterable[bytes]:
    load_parts()
    for number in range(48):
        yield bytes((0, number % 2, 2, number * 3 % 256, number % 8, number * 7 % 256, 1, number))
    for files in _hub_files():
        for document in files.values():
            yield b"\x01" + orjson.dumps(document)


TARGETS = (
    Target(
        name="configs",
        run=_run_configs,
        seeds=_config_seeds,
        dictionary=(b"zero_optimization", b"_component_", b"!!int", b"&a", b"*a", b"1e999", b"9e9"),
        seconds=2.0,
        max_bytes=4096,
        begins=tuple(
            bytes((index, 1)) + begin for index in (0, 1, 5) for begin in (b"", b"a: 1", b"a = ")
        ),
    ),
    Target(
        name="hub-files",
        run=_run_hub_files,
        seeds=_hub_seeds,
        dictionary=(b'"model_type":', b'"torch_dtype":', b'"architectures":', b"1e999", b"llama"),
        seconds=2.0,
        max_bytes=4096,
    ),
)
