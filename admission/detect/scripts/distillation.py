"""Distillation: `--student_model` is trained, `--teacher_model` is frozen beside it.

    flags -> JobSpec

Source: the recipe `distillation.yaml`. What only the script's own copy decides is left out: the
batch above all, which published manifests never say and every copy sets for itself.
"""

from __future__ import annotations

from dataclasses import replace

from admission.detect.draft import Draft
from admission.detect.flags import Flags
from admission.detect.invocation import Invocation
from admission.detect.recipes import load_recipe
from admission.detect.scripts.by_recipe import family_of, match_of
from admission.detect.scripts.family import Call, Match
from admission.detect.scripts.hf_models import put_companion
from admission.detect.scripts.verbs import put_hub_model


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = call.flags
    draft.put("objective", "distill", call.invocation.name)
    put_hub_model(draft, flags.setting("student_model"))
    precision = _precision(call, draft)
    put_companion(draft, flags.setting("teacher_model"), precision=precision)
    draft.integer("input.batchSize", flags.get("per_device_train_batch_size"))
    draft.integer("training.gradientAccumulationSteps", flags.get("gradient_accumulation_steps"))
    draft.integer("input.sequenceLength", flags.get("max_length"))
    flash = flags.get("use_flash_attention")
    if flash is not None and flash.is_on:
        draft.put("model.attention", "flash_attention_2", flash.source)


def _precision(call: Call, draft: Draft) -> str | None:
    """Set mixed precision by the script's switches or the launcher's, and return it."""
    flags = call.flags
    for name in ("fp16", "bf16"):
        flag = flags.get(name)
        if flag is not None and flag.is_on:
            draft.put("training.precision", f"amp-{name}", flag.source)
            return f"amp-{name}"
    launched = call.invocation.launch.precision
    text = draft.word("training.precision", launched)
    if launched is not None and text in ("fp16", "bf16"):
        draft.put("training.precision", f"amp-{text}", launched.source)
        return f"amp-{text}"
    return None


def match(invocation: Invocation, flags: Flags) -> Match:
    """Return how sure it is: its script, or both models by its names for them."""
    found = match_of(invocation, load_recipe("distillation"))
    if found is Match.FLAGS:
        return (
            Match.PLACE if flags.has("teacher_model") and flags.has("student_model") else Match.NO
        )
    return found


FAMILY = replace(family_of("distillation", read), match=match)
