"""Meta's llama-recipes and llama-cookbook: `finetuning.py --enable_fsdp --use_peft …`.

    python-fire flags -> JobSpec

Source: the recipe `llama_recipes.yaml`. The model is loaded in the dtype it is stored in (bf16
before 0.0.5), fp16 with `use_fp16`; FSDP computes in bf16 beside it.
Not modelled: HSDP's groups.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.adapters import (
    LoraNames,
    note_other_adapter,
    put_bits,
    put_lora,
)
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call
from admission.detect.scripts.hf_sharing import put_shard
from admission.detect.scripts.nested import nested_flags
from admission.detect.scripts.stored import stored_dtype
from admission.detect.scripts.verbs import put_hub_model
from admission.detect.versions import is_before

_LORA = LoraNames(
    rank="r", alpha="lora_alpha", dropout="lora_dropout", targets="target_modules", saved=""
)
_CONFIGS = ("lora_config", "fsdp_config", "quantization_config", "train_config")


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    put_hub_model(draft, _setting(call, "model_name"))
    draft.put("objective", "sft", "llama-recipes")
    _put_sizes(call, draft)
    sharded = _setting(call, "enable_fsdp")
    is_sharded = sharded is not None and sharded.is_on
    _put_precision(call, draft, is_sharded=is_sharded)
    if sharded is not None and is_sharded:
        _put_fsdp(call, draft, sharded)
    else:
        draft.put("training.gradientCheckpointing", "none", "default of llama-recipes")
    _put_optimizer(call, draft)
    _put_adapter(call, draft)
    _put_base(call, draft, is_sharded=is_sharded)
    kernels = _setting(call, "use_fast_kernels")
    if kernels is not None and kernels.is_on:
        draft.put("model.attention", "sdpa", kernels.source)


def _setting(call: Call, name: str) -> Flag | None:
    """Return a flag by its name, with or without its configuration's in front."""
    return call.flags.setting(*(f"{config}.{name}" for config in _CONFIGS), name)


def _put_sizes(call: Call, draft: Draft) -> None:
    draft.integer("input.batchSize", _setting(call, "batch_size_training"))
    draft.integer(
        "training.gradientAccumulationSteps", _setting(call, "gradient_accumulation_steps")
    )
    strategy = _setting(call, "batching_strategy")
    text = draft.word("input.padding", strategy)
    if text == "packing":
        draft.integer("input.sequenceLength", _setting(call, "context_length"))
    elif strategy is not None and text is not None:
        draft.gap(
            "input.sequenceLength",
            code=ReasonCode.UNSUPPORTED,
            path=strategy.field,
            reason=f"{strategy.spelling} {text:.40}: the longest sample decides the length",
            hint="state it in the annotation vramgate.dev/spec: input: {sequenceLength: …}",
        )
    clip = _setting(call, "gradient_clipping")
    if clip is not None:
        draft.put("training.clipGradNorm", clip.is_on, clip.source)
    validates = _setting(call, "run_validation")
    if validates is not None and validates.is_on:
        draft.integer("training.evaluation.batchSize", _setting(call, "val_batch_size"))


def _put_precision(call: Call, draft: Draft, *, is_sharded: bool) -> None:
    """Set the dtype the weights are held in, and what FSDP computes in beside them."""
    path = "training.precision"
    half, pure = _setting(call, "use_fp16"), _setting(call, "pure_bf16")
    dtype, source = stored_dtype(call, draft)
    version = call.invocation.versions.get("llama-recipes")
    if half is not None and half.is_on:
        draft.put(path, "fp16", half.source)
    elif pure is not None and pure.is_on and is_sharded:
        draft.put(path, "bf16", pure.source)
    elif is_before(version, (0, 1)):
        draft.put(path, "bf16", f"default of llama-recipes {version}")
    elif dtype is not None:
        draft.put(path, dtype, source)
    mixed = _setting(call, "mixed_precision")
    is_pure = pure is not None and pure.is_on
    if is_sharded and mixed is not None and mixed.is_on and not is_pure:
        low = "fp16" if half is not None and half.is_on else "bf16"
        draft.put("parallelism.mixedPrecision", {"param": low, "reduce": low}, mixed.source)


def _put_fsdp(call: Call, draft: Draft, sharded: Flag) -> None:
    draft.put("parallelism.strategy", "fsdp", sharded.source)
    draft.put("parallelism.implementation", "fsdp1", sharded.source)
    kind = _setting(call, "sharding_strategy")
    if kind is not None and kind.value is not None:
        put_shard(draft, kind.value.text.rpartition(".")[2], kind)
    offload = _setting(call, "fsdp_cpu_offload")
    if offload is not None and offload.is_on:
        draft.put("parallelism.offload", "parameters", offload.source)
    checkpointing = _setting(call, "fsdp_activation_checkpointing")
    if checkpointing is not None:
        mode = "full" if checkpointing.is_on else "none"
        draft.put("training.gradientCheckpointing", mode, checkpointing.source)


def _put_optimizer(call: Call, draft: Draft) -> None:
    """Set AdamW; `anyprecision` counts only beside `pure_bf16`."""
    flag, pure = _setting(call, "optimizer"), _setting(call, "pure_bf16")
    text = flag.value.text.lower() if flag is not None and flag.value is not None else ""
    is_any = text == "anyprecision" and pure is not None and pure.is_on
    source = flag.source if flag is not None else "llama-recipes"
    draft.put("training.optimizer", {"name": "adamw_anyprecision" if is_any else "adamw"}, source)


def _put_adapter(call: Call, draft: Draft) -> None:
    """Set the adapter; another method than LoRA, or frozen layers, is a gap."""
    peft, method = _setting(call, "use_peft"), _setting(call, "peft_method")
    frozen = next(
        (f for f in (_setting(call, n) for n in ("freeze_layers", "freeze_LLM_only")) if f), None
    )
    if peft is not None and peft.is_on:
        kind = draft.word("adapter", method)
        if method is not None and kind == "lora":
            put_lora(draft, _plain(call), source=peft.source, names=_LORA)
        elif method is not None and kind is not None:
            note_other_adapter(draft, method, what=f"{kind:.40} is not read yet")
    elif frozen is not None and frozen.is_on:
        note_other_adapter(draft, frozen, what="trains a part of the layers, not read yet")


def _plain(call: Call) -> Flags:
    """Return the flags with those of LoRA's configuration under their own names."""
    return call.flags.over(nested_flags(call.flags, "lora_config"))


def _put_base(call: Call, draft: Draft, *, is_sharded: bool) -> None:
    """Set a base in 4 or 8 bits; a bare `--quantization` is 8."""
    flag = _setting(call, "quantization")
    if flag is None or not flag.is_on:
        return
    text = flag.value.text.lower() if flag.value is not None else "true"
    bits = {"4bit": 4, "8bit": 8, "true": 8, "1": 8}.get(text)
    if bits is None:
        draft.gap(
            "quantization",
            code=ReasonCode.UNSUPPORTED,
            path=flag.field,
            reason=f"{flag.spelling} {text:.40} is neither 4bit nor 8bit",
            hint="state it in the annotation vramgate.dev/spec: quantization: {bits: 4}",
        )
        return
    kind = _setting(call, "quant_type")
    scheme = kind.value.text if kind is not None and kind.value is not None else ""
    put_bits(draft, bits, source=flag.source, scheme=scheme if bits == 4 else "")
    double = _setting(call, "use_double_quant")
    if bits == 4 and double is not None:
        draft.put("quantization.doubleQuant", double.is_on, double.source)
    if not is_sharded:
        draft.put("parallelism.deviceMap", "auto", flag.source)


FAMILY = family_of("llama_recipes", read)
