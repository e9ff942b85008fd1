"""TRL: `trl sft|dpo|grpo|…` and its scripts of the same names.

    `trl sft --config x.yaml --use_peft …`, `accelerate launch trl/scripts/dpo.py …` -> JobSpec

What it takes by default changed often; where no version is told, a flag that only older releases
have tells it, else the newest is taken.
Source: the recipe `trl.yaml`. Not modelled: vLLM on the training card.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from admission.codes import ReasonCode
from admission.detect.draft import Draft
from admission.detect.flags import Flags, Options
from admission.detect.invocation import Invocation
from admission.detect.recipes import load_recipe
from admission.detect.scripts.adapters import put_bitsandbytes, put_lora
from admission.detect.scripts.by_recipe import with_config
from admission.detect.scripts.family import Call, Family, Match
from admission.detect.scripts.hf_arguments import put_training_arguments, with_trainer
from admission.detect.scripts.hf_doubts import note_surroundings
from admission.detect.scripts.hf_flags import OPTIONS, is_on_cpu
from admission.detect.scripts.hf_models import add_companion, put_companion, put_model
from admission.detect.scripts.hf_precision import put_precision
from admission.detect.scripts.trl_launch import put_launch
from admission.detect.scripts.verbs import number_of
from admission.detect.versions import is_before

NAME = "trl"
_MODULE = "trl.scripts."
_OBJECTIVES: Mapping[str, str] = {
    "sft": "sft",
    "dpo": "dpo",
    "kto": "kto",
    "orpo": "orpo",
    "grpo": "grpo",
    "reward": "reward",
    "ppo": "ppo",
    "gkd": "distill",
}
"""Subcommand or stem of a script -> objective. The others of the recipe are not in the spec."""
_SCRIPTS: Mapping[str, str] = {"reward_modeling": "reward", "sft_vlm": "sft", "dpo_vlm": "dpo"}
_LAST_WITH: Mapping[str, str] = {
    "use_liger": "0.17",
    "max_seq_length": "0.19",
    "torch_dtype": "0.26",
    "max_prompt_length": "0.27",
    "reference_free": "0.27",
}
"""Flag -> the last release that has it."""
_WITH_REFERENCE = ("dpo", "kto", "grpo")
_MOVED = (
    "input.sequenceLength",
    "input.padding",
    "training.precision",
    "training.gradientCheckpointing",
    "training.loss",
)
"""What a script that was copied from one of the releases takes by the release it is from."""
_LENGTHS = ("max_length", "max_seq_length")


def kind_of(invocation: Invocation) -> str:
    """Return which of TRL's trainers a call starts, or nothing."""
    name = invocation.name
    kinds = load_recipe(NAME).modules
    if invocation.is_module:
        kind = name.removeprefix(_MODULE)
        is_own = invocation.launch.launcher == "trl" or name.startswith(_MODULE)
        return kind if is_own and kind in kinds else ""
    stem = name.removesuffix(".py")
    stem = _SCRIPTS.get(stem, stem)
    return stem if name.endswith(".py") and stem in kinds else ""


def match(invocation: Invocation, flags: Flags) -> Match:
    """Return how sure it is: its command or module, or a script of its with its flags."""
    if not kind_of(invocation):
        return Match.NO
    if invocation.is_module or _is_in_place(invocation):
        return Match.PLACE
    is_fed = flags.has("dataset_name", "config", "datasets")
    return Match.PLACE if is_fed and flags.has("model_name_or_path", "config") else Match.NO


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    kind = kind_of(call.invocation)
    flags = with_config(call, draft, call.flags.get("config"))
    recipe = load_recipe(NAME)
    version = call.invocation.versions.get(recipe.package) or _told_by(flags)
    call = with_trainer(call, replace(flags, defaults=recipe.defaults_for(version)))
    draft.put("framework", recipe.framework, f"{call.invocation.where} trl {kind}")
    put_model(call, draft)
    _put_objective(call, draft, kind)
    _put_length(call, draft, kind)
    put_precision(call, draft, is_trainer=True)
    put_training_arguments(call, draft)
    peft = call.flags.setting("use_peft")
    if peft is not None and peft.is_on:
        put_lora(draft, call.flags, source=peft.source)
    compute = call.flags.setting("torch_dtype", "dtype")
    put_bitsandbytes(
        draft,
        call.flags,
        compute=compute.name if compute is not None else "",
        prepare="kbit" if is_before(version, (0, 27)) else "none",
    )
    _put_loss(call, draft, kind)
    _put_references(call, draft, kind)
    put_launch(call, draft, spreads=not is_before(version, (0, 26)))
    is_own = call.invocation.is_module or _is_in_place(call.invocation)
    note_surroundings(call, draft, is_own=is_own)
    if not is_own and version is None:
        draft.forget_defaults(*_MOVED)


def _told_by(flags: Flags) -> str | None:
    """Return the newest release that has all the flags, if one of them is gone by now."""
    found = [version for name, version in _LAST_WITH.items() if flags.has(name)]
    return min(found, key=lambda version: int(version.partition(".")[2]), default=None)


def _is_in_place(invocation: Invocation) -> bool:
    return any(place in invocation.location for place in load_recipe(NAME).places)


def _put_objective(call: Call, draft: Draft, kind: str) -> None:
    source = f"{call.invocation.where} trl {kind}"
    objective = _OBJECTIVES.get(kind)
    if objective is not None:
        draft.put("objective", objective, source)
    else:
        draft.gap(
            "objective",
            code=ReasonCode.UNSUPPORTED,
            path=call.origin,
            reason=f"TRL's {kind} is not read yet",
            hint="state the nearest in the annotation vramgate.dev/spec: objective: dpo",
        )
    if kind in ("reward", "prm"):
        task = "sequence-classification" if kind == "reward" else "token-classification"
        draft.put("model.task", task, source)
        draft.put("model.numLabels", 1 if kind == "reward" else 2, source)


def _put_length(call: Call, draft: Draft, kind: str) -> None:
    """Set the length: prompt and completion together where text is generated."""
    flags = call.flags
    if kind in ("grpo", "rloo"):
        prompt, completion = (
            flags.setting("max_prompt_length"),
            flags.setting("max_completion_length"),
        )
        lengths = (number_of(prompt), number_of(completion))
        if completion is not None and lengths[0] is not None and lengths[1] is not None:
            draft.put("input.sequenceLength", lengths[0] + lengths[1], completion.source)
        return
    draft.integer("input.sequenceLength", flags.setting(*_LENGTHS))
    packing = flags.setting("packing")
    length = flags.setting(*_LENGTHS)
    if length is not None and (packing is None or not packing.is_on):
        draft.put("input.padding", "longest", packing.source if packing else length.source)


def _put_loss(call: Call, draft: Draft, kind: str) -> None:
    """Set a loss that never holds all logits: by default since 1.6, except beside Liger."""
    flag = call.flags.setting("loss_type")
    text = flag.value.text if flag is not None and flag.value is not None else ""
    liger = call.flags.is_on("use_liger_kernel", "use_liger", "use_liger_loss")
    if kind == "sft" and flag is not None and text == "chunked_nll" and not liger:
        draft.put("training.loss", "chunked", flag.source)


def _put_references(call: Call, draft: Draft, kind: str) -> None:
    """Set the frozen models beside the trained one.

    A reference is loaded unless an adapter can be switched off instead, or its figures are made
    before training; GRPO has one only where beta is not zero.
    """
    flags = call.flags
    for name in ("teacher_model_name_or_path", "reward_model_path", "reward_model_name_or_path"):
        put_companion(draft, flags.setting(name))
    vllm, mode = flags.setting("use_vllm"), flags.setting("vllm_mode")
    is_here = mode is None or mode.value is None or mode.value.text != "server"
    if kind == "grpo" and vllm is not None and vllm.is_on and is_here:
        draft.gap(
            "runtime.extraBytes",
            code=ReasonCode.UNSUPPORTED,
            path=vllm.field,
            reason=f"{vllm.spelling} puts vLLM on the training card, which is not read yet",
            hint="state what it takes in the annotation vramgate.dev/spec: "
            "runtime: {extraBytes: …}",
        )
    beta = flags.setting("beta")
    text = beta.value.text if beta is not None and beta.value is not None else ""
    has_none = kind == "grpo" and not text.strip("0.")
    is_spared = flags.is_on("use_peft", "precompute_ref_log_probs", "reference_free")
    model = draft.get("model.name")
    if kind in _WITH_REFERENCE and not has_none and not is_spared and isinstance(model, str):
        source = f"trl {kind}: a reference model beside the trained one"
        add_companion(draft, model, source=source, precision=draft.get("training.precision"))


@cache
def _options() -> Options:
    return Options(names={**OPTIONS.names, **load_recipe(NAME).options.names})


def _flags(invocation: Invocation) -> Flags:
    return invocation.flags(_options())


FAMILY = Family(
    name=NAME,
    flags=_flags,
    match=match,
    read=read,
    is_on_cpu=is_on_cpu,
    may_claim=lambda invocation: bool(kind_of(invocation)),
)
