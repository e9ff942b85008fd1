"""axolotl: `axolotl train x.yaml`, `accelerate launch -m axolotl.cli.train x.yaml --key value`.

    YAML file under the command line's keys -> JobSpec

Source: the recipe `axolotl.yaml`. Not modelled: patches that change what a kernel keeps, ReLoRA.
"""

from __future__ import annotations

from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.draft import Draft
from admission.detect.flags import Flag
from admission.detect.scripts.adapters import (
    ALL_LINEAR,
    LoraNames,
    note_other_adapter,
    put_bits,
    put_lora,
)
from admission.detect.scripts.axolotl_parts import (
    put_fused_losses,
    put_resolved_precision,
    put_shares,
)
from admission.detect.scripts.by_recipe import family_of, with_config
from admission.detect.scripts.family import Call
from admission.detect.scripts.hf_arguments import put_attention, put_habits
from admission.detect.scripts.hf_models import add_companion
from admission.detect.scripts.verbs import number_of, put_hub_model, put_optimizer

_LORA = LoraNames(dora="peft_use_dora", rslora="peft_use_rslora")
_ADAPTERS = ("lora", "qlora")
_NONE = ("", "null", "none", "false")
_OBJECTIVES = {
    "dpo": "dpo",
    "ipo": "dpo",
    "orpo": "orpo",
    "kto": "kto",
    "grpo": "grpo",
}
_ATTENTIONS = (
    ("xformers_attention", "sdpa"),
    ("flex_attention", "flex"),
    ("flash_attention", "flash_attention_2"),
    ("sdp_attention", "sdpa"),
    ("eager_attention", "eager"),
)
"""Older switches, the first that is on counts: `enums.py` LEGACY_ATTN_FLAG_TO_IMPL.

xformers' kernel keeps what the memory-efficient one of SDPA keeps."""


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    words = call.flags.positional
    if not words:
        draft.gap(
            "model.name",
            "input.batchSize",
            code=ReasonCode.NO_MODEL,
            path=call.origin,
            reason="axolotl is given no configuration file",
        )
        return
    flags = with_config(call, draft, _as_flag(call))
    call = replace(call, flags=flags)
    put_hub_model(draft, flags.setting("base_model"))
    _put_sizes(call, draft)
    _put_attention(call, draft)
    put_resolved_precision(call, draft)
    put_optimizer(draft, flags.setting("optimizer"))
    put_habits(call, draft)
    _put_checkpointing(call, draft)
    _put_adapter(call, draft)
    put_fused_losses(call, draft)
    put_shares(call, draft)
    _put_objective(call, draft)


def _as_flag(call: Call) -> Flag:
    """Return the first word, the configuration, as if a flag had named it."""
    word = call.flags.positional[0]
    invocation = call.invocation
    return Flag(
        name="config",
        spelling="axolotl's configuration",
        values=(word,),
        where=invocation.where,
        path=invocation.path,
        origin=word.origin,
    )


def _put_sizes(call: Call, draft: Draft) -> None:
    """Set batch, accumulation and lengths."""
    flags = call.flags
    draft.integer("input.batchSize", flags.setting("micro_batch_size"))
    steps = flags.setting("gradient_accumulation_steps")
    whole, micro = flags.get("batch_size"), number_of(flags.setting("micro_batch_size"))
    total = number_of(whole)
    if whole is not None and not flags.has("gradient_accumulation_steps") and total and micro:
        source = f"{whole.source} / micro_batch_size"
        draft.put("training.gradientAccumulationSteps", max(1, total // micro), source)
    else:
        draft.integer("training.gradientAccumulationSteps", steps)
    draft.integer("input.sequenceLength", flags.setting("sequence_len"))
    packing = flags.setting("sample_packing")
    padded = flags.setting("pad_to_sequence_len")
    is_fixed = any(flag is not None and flag.is_on for flag in (packing, padded))
    if not is_fixed and packing is not None:
        draft.put("input.padding", "longest", packing.source)
    size = flags.setting("image_size")
    sides = [number_of(_only(size, at)) for at in range(2)] if size is not None else []
    if size is not None and sides[0]:
        draft.put("input.imageSize", [3, sides[0], sides[1] or sides[0]], size.source)
    evaluated = flags.setting("val_set_size")
    share = evaluated.value.text if evaluated is not None and evaluated.value is not None else "0"
    if share.strip("0.") or flags.has("test_datasets.0.path"):
        draft.integer(
            "training.evaluation.batchSize",
            flags.setting("eval_batch_size") or flags.setting("micro_batch_size"),
        )


def _only(flag: Flag, at: int) -> Flag | None:
    return replace(flag, values=flag.values[at : at + 1]) if len(flag.values) > at else None


def _put_attention(call: Call, draft: Draft) -> None:
    named = call.flags.setting("attn_implementation")
    if named is not None:
        put_attention(draft, named)
        return
    for name, attention in _ATTENTIONS:
        flag = call.flags.setting(name)
        if flag is not None and flag.is_on:
            draft.put("model.attention", attention, flag.source)
            return


def _put_checkpointing(call: Call, draft: Draft) -> None:
    """Set gradient checkpointing: a switch, or a word for where activations are kept."""
    flag = call.flags.setting("gradient_checkpointing")
    if flag is None:
        return
    mode = "full" if flag.is_on else "none"
    draft.put("training.gradientCheckpointing", mode, flag.source)
    reentrant = call.flags.setting("gradient_checkpointing_kwargs.use_reentrant")
    if flag.is_on and reentrant is not None:
        value = {"mode": "full", "reentrant": reentrant.is_on}
        draft.put("training.gradientCheckpointing", value, flag.source)
    offloaded = call.flags.setting("activation_offloading")
    text = flag.value.text if flag.value is not None else ""
    if text.startswith("offload"):
        draft.put("training.activationOffload", True, flag.source)
    elif offloaded is not None and offloaded.is_on:
        draft.put("training.activationOffload", True, offloaded.source)


def _put_adapter(call: Call, draft: Draft) -> None:
    """Set the adapter and the base it is on; another kind, or frozen parts, is a gap."""
    flags = call.flags
    flag = flags.setting("adapter")
    kind = draft.word("adapter", flag)
    if flag is not None and kind is not None and kind.lower() in _ADAPTERS:
        put_lora(draft, flags, source=flag.source, names=_LORA)
        linear = flags.setting("lora_target_linear")
        if linear is not None and linear.is_on:
            listed = [m for m in draft.get("adapter.targetModules") or () if m != ALL_LINEAR]
            draft.put("adapter.targetModules", [ALL_LINEAR, *listed], linear.source)
        _put_base(call, draft)
    elif flag is not None and kind is not None and kind.lower() not in _NONE:
        note_other_adapter(draft, flag, what=f"{kind:.40} is an adapter that is not read yet")
    frozen = flags.setting("unfrozen_parameters")
    if frozen is not None and frozen.values:
        note_other_adapter(draft, frozen, what="trains a part of the weights, not read yet")


def _put_base(call: Call, draft: Draft) -> None:
    """Set the base's bits; norms and embeddings are cast up and back (`castBack`)."""
    for name, bits in (("load_in_4bit", 4), ("load_in_8bit", 8)):
        flag = call.flags.setting(name)
        if flag is None or not flag.is_on:
            continue
        put_bits(draft, bits, source=flag.source)
        if bits == 4:
            draft.put("quantization.doubleQuant", True, "default of axolotl")
        draft.put("quantization.prepare", "castBack", "default of axolotl")
        return


def _put_objective(call: Call, draft: Draft) -> None:
    """Set the objective; a reference model is loaded unless an adapter can be switched off."""
    flags = call.flags
    flag = flags.setting("rl")
    kind = draft.word("objective", flag)
    reward = flags.setting("reward_model")
    if flag is None or kind is None or kind.lower() in _NONE:
        is_reward = reward is not None and reward.is_on
        if reward is not None and is_reward:
            draft.put("objective", "reward", reward.source)
        elif flag is None or kind is not None:
            draft.put("objective", "sft", "default of axolotl")
        return
    objective = _OBJECTIVES.get(kind.lower())
    if objective is None:
        draft.gap(
            "objective",
            code=ReasonCode.UNSUPPORTED,
            path=flag.field,
            reason=f"{flag.spelling} {kind:.40} is not read yet",
            hint="state the nearest in the annotation vramgate.dev/spec: objective: dpo",
        )
        return
    draft.put("objective", objective, flag.source)
    own = flags.setting("rl_adapter_ref_model")
    keeps = not draft.get("adapter") or (own is not None and own.is_on)
    model = draft.get("model.name")
    if objective in ("dpo", "kto") and keeps and isinstance(model, str):
        precision = draft.get("training.precision")
        add_companion(draft, model, source=flag.source, precision=precision)


FAMILY = family_of("axolotl", read, is_closed=False)
