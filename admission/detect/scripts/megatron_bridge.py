"""Megatron-Bridge's performance scripts: a recipe by name, cut as flags or its preset say.

`run_script.py --model_recipe_name llama3_70b --gpu h100 …` -> the draft

Source: the recipe `megatron_bridge`, the table `megatron_bridge_presets`. Not modelled: Hydra
overrides of keys without a flag, `--cuda_graph_impl`, low-precision computing but FP8 by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from admission.codes import ReasonCode
from admission.detect.configs import document_flags
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.recipes.tables import differs_between_releases, load_table, row_of
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.megatron_split import (
    Split,
    put_micro_batches,
    put_mixed_bf16,
    put_recomputation,
    put_split,
)
from admission.detect.scripts.verbs import number_of

_TABLE = "megatron_bridge_presets"
_NAME = "Megatron-Bridge"
_LENGTHS = (("llama3", 8192), ("nemotronh", 8192), ("deepseek_v3", 4096), ("qwen3", 4096))
"""Beginnings of recipe names -> tokens (`set_*_common_configs` in the performance configs)."""
_DECIDING = (
    "micro_batch_size",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "use_megatron_fsdp",
    "recompute_modules",
    "recompute_num_layers",
    "cpu_offloading_num_layers",
)
_PLAIN = ("llama3", "llama31")
"""Recipes that recompute nothing unless a preset says so."""
_OVERRIDES: Mapping[str, tuple[str, ...]] = {
    "micro_batch_size": ("train.micro_batch_size",),
    "global_batch_size": ("train.global_batch_size",),
    "seq_length": ("model.seq_length", "dataset.sequence_length"),
    "tensor_model_parallel_size": ("model.tensor_model_parallel_size",),
    "pipeline_model_parallel_size": ("model.pipeline_model_parallel_size",),
    "context_parallel_size": ("model.context_parallel_size",),
    "virtual_pipeline_model_parallel_size": ("model.virtual_pipeline_model_parallel_size",),
    "expert_model_parallel_size": ("model.expert_model_parallel_size",),
}


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    name, flag = _recipe_name(call, draft)
    if name is None or flag is None:
        return
    _model(draft, name, flag)
    preset = _preset(call, draft, name)
    flags = call.flags.over(preset) if preset is not None else call.flags
    _split(call, draft, flags, is_preset=preset is not None)
    _length(draft, flags, name)
    _training(draft, flags, name, is_preset=preset is not None)


def _recipe_name(call: Call, draft: Draft) -> tuple[str | None, Flag | None]:
    """Return the recipe's name: one flag, or before 0.3 a model and its size."""
    flags = call.flags
    flag = flags.get("model_recipe_name", "recipe")
    text = draft.word("model.name", flag)
    if flag is not None:
        plain = (text or "").lower()
        for ending in ("_pretrain_config", "_finetune_config", "_sft_config", "_peft_config"):
            plain = plain.removesuffix(ending)
        return (plain or None), flag
    family, size = flags.get("model_name"), flags.get("model_size")
    first, second = draft.word("model.name", family), draft.word("model.name", size)
    if first is not None and second is not None:
        return f"{first}_{second}".lower(), family
    if family is None:
        draft.gap(
            "model.name",
            "input.batchSize",
            code=ReasonCode.NO_MODEL,
            path=call.origin,
            reason=f"{call.invocation.name} names no recipe",
            hint="give --model_recipe_name, or " + annotation_hint("model.name"),
        )
    return None, None


def _model(draft: Draft, name: str, flag: Flag) -> None:
    model = load_table(_TABLE)["models"].get(name)
    if model is None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=flag.field,
            reason=f"{flag.spelling} {name:.60} is no recipe that is known",
            hint=annotation_hint("model.name"),
        )
        return
    draft.put("model.source", "huggingface", flag.source)
    draft.put("model.name", model, flag.source)


def _preset(call: Call, draft: Draft, name: str) -> Flags | None:
    """Return the preset of the recipe for a card and a precision, if it is known."""
    flags = call.flags
    words = {}
    for key in ("task", "gpu", "compute_dtype", "config_variant"):
        flag = flags.setting(key)
        words[key] = flag.value.text.lower() if flag is not None and flag.value else ""
    base = f"{name}_{words['task']}_config_{words['gpu']}_{words['compute_dtype']}"
    version = call.invocation.versions.get("megatron-bridge")
    presets = load_table(_TABLE)["presets"]
    for key in (f"{base}_{words['config_variant'] or 'v2'}", f"{base}_v1", base):
        values = row_of(presets[key], version) if key in presets else None
        if values is not None:
            if version is None and differs_between_releases(presets[key], _DECIDING):
                _doubt(call, draft, key)
            return document_flags(_scaled(call, values), told_by=f"{_NAME} {key}", path=call.origin)
    return None


def _doubt(call: Call, draft: Draft, key: str) -> None:
    """Note that the preset is another in another release, unless the flags say what it would."""
    if all(call.flags.has(name) for name in _DECIDING[:3]):
        return
    draft.doubt(
        f"{call.origin}: the preset {key:.80} differs between releases of Megatron-Bridge; which "
        "one is installed is not told",
        "input.batchSize",
        "parallelism",
    )


def _scaled(call: Call, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a preset with its global batch scaled to the job's cards, as the script does."""
    cards = number_of(call.flags.get("num_gpus"))
    own, batch = values.get("num_gpus"), values.get("global_batch_size")
    if cards and own and batch:
        return {**values, "global_batch_size": max(1, batch * cards // own)}
    return values


def _setting(flags: Flags, key: str) -> Flag | None:
    return flags.setting(key, *_OVERRIDES.get(key, ()))


def _split(call: Call, draft: Draft, flags: Flags, *, is_preset: bool) -> None:
    split = Split(
        tensor=_setting(flags, "tensor_model_parallel_size"),
        pipeline=_setting(flags, "pipeline_model_parallel_size"),
        context=_setting(flags, "context_parallel_size"),
        expert=_setting(flags, "expert_model_parallel_size"),
        virtual=_setting(flags, "virtual_pipeline_model_parallel_size"),
        world=flags.get("num_gpus"),
    )
    sharded = flags.setting("use_megatron_fsdp")
    is_sharded = sharded is not None and sharded.is_on
    replicas = put_split(call, draft, split, strategy="fsdp" if is_sharded else "ddp")
    if not is_sharded:
        draft.put("parallelism.distributedOptimizer", True, source_of_default(_NAME))
    micro = _setting(flags, "micro_batch_size")
    if micro is None and is_preset:
        draft.put("input.batchSize", 1, source_of_default(_NAME))
    put_micro_batches(
        draft, micro=micro, total=_setting(flags, "global_batch_size"), replicas=replicas
    )
    tensor = draft.get("parallelism.tensorParallel")
    if isinstance(tensor, int) and tensor > 1:
        draft.put("parallelism.sequenceParallel", True, source_of_default(_NAME))


def _length(draft: Draft, flags: Flags, name: str) -> None:
    if draft.integer("input.sequenceLength", _setting(flags, "seq_length")):
        return
    task = flags.setting("task")
    length = next((number for start, number in _LENGTHS if name.startswith(start)), None)
    if length is not None and task is not None and task.value and task.value.text == "pretrain":
        draft.put("input.sequenceLength", length, source_of_default(_NAME))


def _training(draft: Draft, flags: Flags, name: str, *, is_preset: bool) -> None:
    source = source_of_default(_NAME)
    dtype = flags.setting("compute_dtype")
    text = dtype.value.text.lower() if dtype is not None and dtype.value is not None else ""
    if dtype is not None and text.startswith(("bf16", "fp8", "nvfp4")):
        put_mixed_bf16(draft, source=dtype.source)
    if dtype is not None and text.startswith(("fp8", "nvfp4")):
        draft.put("training.float8", {"recipe": text}, dtype.source)
    optimizer = flags.get("optimizer_type")
    chosen = draft.word("training.optimizer", optimizer)
    draft.put(
        "training.optimizer",
        {"name": (chosen or "adam").lower()},
        optimizer.source if optimizer is not None else source,
    )
    modules = flags.setting("recompute_modules")
    layers = flags.setting("recompute_num_layers")
    put_recomputation(draft, granularity=None, modules=modules, layers=layers)
    if modules is None and layers is None and (name.startswith(_PLAIN) or is_preset):
        draft.put("training.gradientCheckpointing", "none", source)
    offloaded = flags.setting("cpu_offloading_num_layers", "activation_offload_layers")
    if number_of(offloaded):
        draft.put("training.activationOffload", True, offloaded.source if offloaded else source)
    task = flags.setting("task")
    if task is not None and task.value is not None and task.value.text in ("peft", "lora"):
        draft.gap(
            "adapter",
            code=ReasonCode.UNSUPPORTED,
            path=task.field or "command",
            reason=f"{task.spelling} {task.value.text} trains an adapter whose size is not told",
            hint=annotation_hint("adapter.rank"),
        )


FAMILY = family_of("megatron_bridge", read, is_closed=False)
