"""LLM Foundry on Composer: `composer train/train.py CONFIG.yaml k=v`.

a YAML file with overrides -> the draft

Source: the recipe `llm_foundry`. Not modelled: MPT blocks of other kinds in one model, fp8.
"""

from __future__ import annotations

from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.invocation import Invocation
from admission.detect.recipes import load_recipe
from admission.detect.recipes.tables import load_table
from admission.detect.scripts.by_recipe import family_of, match_of
from admission.detect.scripts.family import Call, Match, source_of_default
from admission.detect.scripts.interpolation import interpolated
from admission.detect.scripts.optimizer_classes import put_optimizer_class
from admission.detect.scripts.shipped_files import with_shipped
from admission.detect.scripts.verbs import (
    number_of,
    put_adapter,
    put_architecture,
    put_checkpointing,
    put_choice,
    put_hub_model,
    put_parallel,
)

_RECIPE = "llm_foundry"
_NAME = "LLM Foundry"
_PRECISIONS = {
    "amp_bf16": "amp-bf16",
    "amp_fp16": "amp-fp16",
    "bf16": "bf16",
    "fp16": "fp16",
    "fp32": "fp32",
    "amp_fp8": None,
}
_STRATEGIES = {
    "full_shard": "fsdp",
    "shard_grad_op": "fsdp",
    "hybrid_shard": "fsdp",
    "no_shard": "ddp",
}
_STEPS = "training.gradientAccumulationSteps"


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = _configured(call, draft)
    _model(call, draft, flags)
    _batch(call, draft, flags)
    draft.integer("input.sequenceLength", flags.setting("max_seq_len", "variables.max_seq_len"))
    put_choice(
        draft, "training.precision", flags.setting("precision"), _PRECISIONS, what="precision"
    )
    put_optimizer_class(draft, flags.setting("optimizer.name"))
    clipping = flags.setting("algorithms.gradient_clipping.clipping_threshold")
    draft.put(
        "training.clipGradNorm",
        clipping is not None,
        clipping.source if clipping is not None else source_of_default(_NAME),
    )
    _sharding(call, draft, flags)


def _configured(call: Call, draft: Draft) -> Flags:
    words = call.flags.positional
    if not words:
        return call.flags
    flag = Flag(
        name="yaml",
        spelling="configuration",
        values=(words[0],),
        where=call.invocation.where,
        path=call.invocation.path,
        origin=words[0].origin,
    )
    files = load_table("llm_foundry_configs")["files"]
    return interpolated(with_shipped(call, draft, flag, files, name=_NAME))


def _model(call: Call, draft: Draft, flags: Flags) -> None:
    if any("model.name" in gap.closed_by for gap in draft.gaps):
        return
    flag = flags.setting("model.name")
    kind = draft.word("model.name", flag)
    if kind in ("hf_causal_lm", "hf_t5", "hf_prefix_lm"):
        put_hub_model(draft, flags.setting("model.pretrained_model_name_or_path"))
        _attention(draft, flags)
        _adapter(draft, flags)
        if any(name.startswith("model.config_overrides.") for name in _names(flags)):
            draft.doubt(f"{call.origin}: model.config_overrides changes the model", "model.config")
        return
    if kind == "mpt_causal_lm" and flag is not None:
        keys = {
            "d_model": flags.setting("model.d_model"),
            "n_heads": flags.setting("model.n_heads"),
            "n_layers": flags.setting("model.n_layers"),
            "expansion_ratio": flags.setting("model.expansion_ratio"),
            "vocab_size": flags.setting("model.vocab_size"),
            "max_seq_len": flags.setting("model.max_seq_len", "max_seq_len"),
        }
        put_architecture(draft, "mpt", keys, name="mpt", source=flag.source)
        draft.put("model.task", "causal-lm", flag.source)
        return
    draft.gap(
        "model.name",
        code=ReasonCode.NO_MODEL,
        path=flag.field if flag is not None else call.origin,
        reason=f"model.name {kind or '':.60} is none of hf_causal_lm, mpt_causal_lm",
        hint=annotation_hint("model.name"),
    )


def _names(flags: Flags) -> tuple[str, ...]:
    return tuple(flag.name for flag in flags.given)


def _attention(draft: Draft, flags: Flags) -> None:
    flag = flags.setting("model.attn_implementation")
    if flag is not None and flag.value is not None:
        if flag.value.text in ("eager", "sdpa", "flash_attention_2"):
            draft.put("model.attention", flag.value.text, flag.source)
    elif (flash := flags.setting("model.use_flash_attention_2")) is not None and flash.is_on:
        draft.put("model.attention", "flash_attention_2", flash.source)


def _adapter(draft: Draft, flags: Flags) -> None:
    kind = flags.setting("model.peft_config.peft_type")
    text = draft.word("adapter.type", kind)
    if kind is None or text is None:
        return
    put_adapter(
        draft,
        text.lower(),
        source=kind.source,
        rank=flags.setting("model.peft_config.r"),
        alpha=flags.setting("model.peft_config.lora_alpha"),
        targets=flags.setting("model.peft_config.target_modules"),
    )


def _batch(call: Call, draft: Draft, flags: Flags) -> None:
    """Set the micro-batch; `auto` tries what fits the card and is no batch."""
    if any("input.batchSize" in gap.closed_by for gap in draft.gaps):
        return
    micro = flags.setting("device_train_microbatch_size")
    text = micro.value.text if micro is not None and micro.value is not None else "auto"
    if text == "auto":
        draft.gap(
            "input.batchSize",
            code=ReasonCode.NO_BATCH,
            path=micro.field if micro is not None else call.origin,
            reason="device_train_microbatch_size auto tries what fits the card",
            hint="give device_train_microbatch_size a number",
        )
        return
    draft.integer("input.batchSize", micro)
    whole, size = flags.setting("global_train_batch_size"), draft.get("input.batchSize")
    number = number_of(whole)
    if whole is None or call.ranks.gaps:
        return
    if number is None:
        draft.integer(_STEPS, whole)
    elif isinstance(size, int):
        share = max(1, number // call.ranks.total)
        steps = max(1, -(-share // size))
        draft.put(_STEPS, steps, f"{whole.source} / ({size} * {call.ranks.total})")
        if share < size:
            draft.put("input.batchSize", share, f"{whole.source} / {call.ranks.total}")


def _sharding(call: Call, draft: Draft, flags: Flags) -> None:
    prefix = "fsdp_config" if any(n.startswith("fsdp_config.") for n in _names(flags)) else ""
    if not prefix and any(n.startswith("parallelism_config.") for n in _names(flags)):
        prefix = "parallelism_config.fsdp"
    if not prefix:
        draft.put("training.gradientCheckpointing", "none", source_of_default(_NAME))
        return
    sharding = flags.setting(f"{prefix}.sharding_strategy")
    text = sharding.value.text.lower() if sharding is not None and sharding.value else "full_shard"
    source = sharding.source if sharding is not None else source_of_default(_NAME)
    if call.ranks.total > 1 or call.ranks.gaps:
        put_parallel(draft, _STRATEGIES.get(text, "fsdp"), source=source)
        if text == "shard_grad_op":
            draft.put("parallelism.reshardAfterForward", False, source)
        mixed = flags.setting(f"{prefix}.mixed_precision")
        mode = mixed.value.text.upper() if mixed is not None and mixed.value else "DEFAULT"
        if draft.get("training.precision") == "amp-bf16" and mode in ("PURE", "DEFAULT"):
            reduce = "bf16" if mode == "PURE" else "fp32"
            draft.put(
                "parallelism.mixedPrecision",
                {"param": "bf16", "reduce": reduce},
                mixed.source if mixed is not None else source_of_default(_NAME),
            )
    checkpointing = flags.setting(f"{prefix}.activation_checkpointing")
    put_checkpointing(draft, checkpointing)
    if checkpointing is None:
        draft.put("training.gradientCheckpointing", "none", source_of_default(_NAME))
    offload = flags.setting(f"{prefix}.activation_cpu_offload")
    if offload is not None and offload.is_on:
        draft.put("training.activationOffload", True, offload.source)


def _match(invocation: Invocation, _flags: Flags) -> Match:
    """Return how sure it is: what Composer starts as `train.py X.yaml` is LLM Foundry's script."""
    words = [word.text for word in invocation.arguments]
    has_file = any(word.endswith((".yaml", ".yml")) for word in words)
    if invocation.launch.launcher == "composer" and invocation.name == "train.py" and has_file:
        return Match.PLACE
    return match_of(invocation, load_recipe(_RECIPE))


FAMILY = replace(
    family_of(_RECIPE, read, is_closed=False),
    match=_match,
    may_claim=lambda invocation: _match(invocation, Flags()) is not Match.NO,
)
