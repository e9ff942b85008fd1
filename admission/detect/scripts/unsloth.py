"""Unsloth's command-line script: `unsloth-cli.py --model_name … --r 16`.

    flags -> JobSpec

Source: the recipe `unsloth.yaml`. Not modelled: what its patches spare, so a reading is a doubt.
"""

from __future__ import annotations

from admission.detect.draft import Draft
from admission.detect.scripts.adapters import LoraNames, put_bits, put_lora
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call
from admission.detect.scripts.hf_arguments import put_batches, put_habits, put_optim
from admission.detect.scripts.hf_precision import put_precision
from admission.detect.scripts.verbs import put_hub_model

_LORA = LoraNames(rank="r", targets="", saved="")
_TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = call.flags
    put_hub_model(draft, flags.setting("model_name"))
    draft.put("objective", "sft", "unsloth-cli")
    put_batches(call, draft)
    draft.integer("input.sequenceLength", flags.setting("max_seq_length"))
    packing = flags.setting("packing")
    if packing is None or not packing.is_on:
        draft.put("input.padding", "longest", "default of unsloth-cli packing")
    if flags.setting("dtype") is None:
        draft.put(
            "training.precision", "bf16", "default of unsloth-cli: bf16 where the card has it"
        )
    else:
        put_precision(call, draft, is_trainer=False)
    put_optim(call, draft)
    put_habits(call, draft)
    checkpointing = flags.setting("use_gradient_checkpointing")
    if checkpointing is not None:
        is_on = checkpointing.is_on
        mode = "full" if is_on else "none"
        draft.put("training.gradientCheckpointing", mode, checkpointing.source)
        is_own = checkpointing.value is not None and checkpointing.value.text == "unsloth"
        if is_own:
            draft.put("training.activationOffload", True, checkpointing.source)
    put_lora(draft, flags, source="unsloth-cli", names=_LORA)
    draft.put("adapter.targetModules", _TARGETS, "unsloth-cli")
    four = flags.setting("load_in_4bit")
    if four is not None and four.is_on:
        put_bits(draft, 4, source=four.source)
        draft.put("quantization.doubleQuant", True, "default of unsloth")
        draft.put("quantization.prepare", "none", "default of unsloth")
    draft.doubt(f"{call.origin}: what Unsloth's patches spare is not modelled")


FAMILY = family_of("unsloth", read)
