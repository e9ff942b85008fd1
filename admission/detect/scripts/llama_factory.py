"""LLaMA-Factory: `llamafactory-cli train x.yaml k=v`, `src/train.py --stage sft …`.

    file under the command line's keys, over the Trainer's arguments -> JobSpec

Source: the recipe `llama_factory.yaml`. Trainable weights are cast to fp32 unless `pure_bf16`;
frozen ones stay in the dtype of mixed precision.
Not modelled: BAdam's blocks, mixture of depths, Unsloth's patches.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from admission.codes import ReasonCode
from admission.detect.draft import Draft
from admission.detect.flags import Flags, Options
from admission.detect.invocation import Invocation
from admission.detect.recipes import load_recipe
from admission.detect.scripts.adapters import LoraNames, note_other_adapter, put_lora
from admission.detect.scripts.by_recipe import flags_of, match_of, with_config
from admission.detect.scripts.family import Call, Family, Match
from admission.detect.scripts.hf_arguments import (
    put_batches,
    put_evaluation,
    put_habits,
    put_optim,
    put_switches,
    with_trainer,
)
from admission.detect.scripts.hf_flags import OPTIONS, is_on_cpu
from admission.detect.scripts.hf_models import add_companion, put_companion, put_model
from admission.detect.scripts.hf_sharing import put_sharing
from admission.detect.scripts.llama_factory_base import put_base, put_dtype
from admission.detect.scripts.verbs import number_of, put_choice

NAME = "llama_factory"
_LORA = LoraNames(rank="lora_rank", targets="lora_target", saved="additional_target")
_STAGES: Mapping[str, str] = {
    "pt": "supervised",
    "sft": "sft",
    "rm": "reward",
    "dpo": "dpo",
    "kto": "kto",
    "ppo": "ppo",
    "orpo": "orpo",
}
_OPTIMIZERS = (
    ("use_galore", "galore"),
    ("use_apollo", "apollo"),
    ("use_badam", "badam"),
    ("use_adam_mini", "adam_mini"),
    ("use_muon", "muon"),
)
_ATTENTIONS = {
    "auto": None,
    "disabled": "eager",
    "off": "eager",
    "sdpa": "sdpa",
    "fa2": "flash_attention_2",
    "fa3": "flash_attention_2",
}
_COMMAND = "llamafactory-cli"
_FILES = (".yaml", ".yml", ".json")
_ENOUGH = 2
"""Flags of its own that tell it, together, wherever the script is."""


def match(invocation: Invocation, _flags: Flags) -> Match:
    """Return how sure it is: its command, its folder, or several of its own flags."""
    recipe = load_recipe(NAME)
    found = match_of(invocation, recipe)
    if found is Match.FLAGS:
        return Match.PLACE if len(recipe.own & invocation.spellings) >= _ENOUGH else Match.NO
    return found


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    words = call.flags.positional
    file = words[0].text if words and words[0].text.endswith(_FILES) else ""
    flags = with_config(call, draft, None, path=file) if file else call.flags
    call = with_trainer(call, flags)
    source = f"{call.invocation.where} LLaMA-Factory"
    draft.put("framework", "pytorch", source)
    put_model(call, draft)
    put_choice(draft, "model.attention", flags.setting("flash_attn"), _ATTENTIONS, what="attention")
    put_batches(call, draft)
    _put_length(call, draft)
    _put_tuning(call, draft)
    put_dtype(call, draft)
    put_sharing(call, draft)
    put_base(call, draft)
    _put_training(call, draft)
    _put_objective(call, draft)
    _put_allocator(call, draft)
    _note_idle(call, draft, is_seen=flags is not call.flags or not file)


def _put_length(call: Call, draft: Draft) -> None:
    flags = call.flags
    length, packing = flags.setting("cutoff_len"), flags.setting("packing", "neat_packing")
    draft.integer("input.sequenceLength", length)
    stage = flags.setting("stage")
    is_pre_training = stage is not None and stage.value is not None and stage.value.text == "pt"
    is_packed = packing.is_on if packing is not None else is_pre_training
    if not is_packed and length is not None:
        draft.put("input.padding", "longest", packing.source if packing else length.source)


def _put_tuning(call: Call, draft: Draft) -> None:
    """Set what is trained: all, a LoRA adapter, or a gap for a part of the layers."""
    flag = call.flags.setting("finetuning_type")
    kind = draft.word("adapter", flag)
    if flag is None or kind is None or kind == "full":
        return
    if kind != "lora":
        note_other_adapter(draft, flag, what=f"{kind:.40} trains a part that is not read yet")
        return
    put_lora(draft, call.flags, source=flag.source, names=_LORA)
    rank = number_of(call.flags.setting("lora_rank"))
    if rank is not None and not call.flags.has("lora_alpha"):
        draft.put("adapter.alpha", float(2 * rank), "default of LLaMA-Factory: twice the rank")


def _put_training(call: Call, draft: Draft) -> None:
    """Set optimizer, checkpointing (on unless it is disabled) and what the Trainer does."""
    flags = call.flags
    put_optim(call, draft)
    for name, optimizer in _OPTIMIZERS:
        flag = flags.setting(name)
        if flag is not None and flag.is_on:
            draft.put("training.optimizer", {"name": optimizer}, flag.source)
    put_habits(call, draft)
    disabled = flags.setting("disable_gradient_checkpointing")
    if disabled is not None:
        mode = "none" if disabled.is_on else "full"
        draft.put("training.gradientCheckpointing", mode, disabled.source)
    put_evaluation(call, draft)
    put_switches(call, draft)
    liger = flags.setting("enable_liger_kernel")
    if liger is not None and liger.is_on:
        draft.put("training.kernels", "liger", liger.source)
        draft.put("training.loss", "fused", liger.source)
    unsloth = flags.setting("use_unsloth")
    if unsloth is not None and unsloth.is_on:
        draft.doubt(f"{unsloth.field}: what Unsloth's patches spare is not modelled")


def _put_objective(call: Call, draft: Draft) -> None:
    """Set the stage's objective and the frozen models that it has on the card."""
    flags = call.flags
    stage = flags.setting("stage")
    objective = put_choice(draft, "objective", stage, _STAGES, what="stage")
    loss = flags.setting("pref_loss", "dpo_loss")
    preference = loss.value.text if loss is not None and loss.value is not None else "sigmoid"
    if objective == "dpo" and loss is not None and preference == "orpo":
        objective = "orpo"
        draft.put("objective", objective, loss.source)
    if objective == "reward" and stage is not None:
        draft.put("model.task", "sequence-classification", stage.source)
        draft.put("model.numLabels", 1, stage.source)
    reference = flags.setting("ref_model")
    model, precision = draft.get("model.name"), draft.get("training.precision")
    needs = (objective == "dpo" and preference != "simpo") or objective in ("kto", "ppo")
    if needs and reference is not None:
        put_companion(draft, reference, precision=precision)
    elif needs and stage is not None and not draft.get("adapter") and isinstance(model, str):
        add_companion(draft, model, source=stage.source, precision=precision)
    if objective == "ppo":
        put_companion(draft, flags.setting("reward_model"), precision=precision)


def _put_allocator(call: Call, draft: Draft) -> None:
    """Set the allocator that its command asks for where it starts torchrun itself."""
    invocation = call.invocation
    words = invocation.variables.get("OPTIM_TORCH", ())
    is_off = bool(words) and words[0].text.lower() in ("0", "false", "n", "no")
    if invocation.launch.launcher == _COMMAND and call.gpus > 1 and not is_off:
        path = "runtime.env.PYTORCH_CUDA_ALLOC_CONF"
        draft.put(path, "expandable_segments:True", f"default of {_COMMAND} OPTIM_TORCH")


def _note_idle(call: Call, draft: Draft, *, is_seen: bool) -> None:
    """Note a gap where nothing says that it trains."""
    if is_seen and not call.flags.is_on("do_train"):
        draft.gap(
            "phase",
            code=ReasonCode.UNSUPPORTED,
            path=call.origin,
            reason="LLaMA-Factory trains only with do_train; evaluation alone is not read yet",
            hint="give do_train: true, or state it in the annotation vramgate.dev/spec: phase: …",
        )


@cache
def _options() -> Options:
    own = load_recipe(NAME).options
    return Options(names={**OPTIONS.names, **own.names}, takes_pairs=True)


FAMILY = Family(
    name="LLaMA-Factory",
    flags=lambda invocation: flags_of(invocation, NAME, _options()),
    match=match,
    read=read,
    is_on_cpu=is_on_cpu,
    may_claim=lambda invocation: match_of(invocation, load_recipe(NAME)) is not Match.NO,
)
