"""Programs on Lightning's command line: `main.py fit --config x.yaml --trainer.devices 4`.

trainer, model and data settings -> the draft

Source: the recipe `lightning_cli`. What a person's own module does is not seen: its model is read
where a setting names one of a public zoo, its optimizer where one is given.
"""

from __future__ import annotations

from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.invocation import Invocation
from admission.detect.names import hub_id
from admission.detect.recipes import load_recipe
from admission.detect.scripts.by_recipe import family_of, with_config
from admission.detect.scripts.family import Call, Match
from admission.detect.scripts.optimizer_classes import put_optimizer_class
from admission.detect.scripts.verbs import number_of, put_batch, put_choice, put_parallel

_RECIPE = "lightning_cli"
_PRECISIONS = {
    "32": "fp32",
    "32-true": "fp32",
    "16": "amp-fp16",
    "16-mixed": "amp-fp16",
    "16-true": "fp16",
    "bf16": "amp-bf16",
    "bf16-mixed": "amp-bf16",
    "bf16-true": "bf16",
}
_STRATEGIES = (
    ("deepspeed_stage_1", "zero1"),
    ("deepspeed_stage_2", "zero2"),
    ("deepspeed_stage_3", "zero3"),
    ("deepspeed", "zero2"),
    ("fsdp", "fsdp"),
    ("ddp", "ddp"),
    ("auto", "ddp"),
)
"""Beginning of a strategy's name -> how cards share; `deepspeed` alone is stage 2."""
_HUB_KEYS = (
    "model_name_or_path",
    "pretrained_model_name_or_path",
    "hf_model_name",
    "model_id",
    "model_name",
    "pretrained_model",
    "checkpoint",
    "backbone",
)
_SUBCOMMANDS = ("fit",)


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = with_config(call, draft, call.flags.get("config"))
    _model(call, draft, flags)
    batch = flags.setting(
        "data.batch_size",
        "data.init_args.batch_size",
        "data.init_args.train_batch_size",
        "data.train_batch_size",
    )
    put_batch(call, draft, batch)
    steps = flags.setting("trainer.accumulate_grad_batches")
    draft.integer("training.gradientAccumulationSteps", steps)
    put_choice(
        draft,
        "training.precision",
        flags.setting("trainer.precision"),
        _PRECISIONS,
        what="precision",
    )
    put_optimizer_class(draft, flags.setting("optimizer.class_path", "optimizer"))
    clip = flags.setting("trainer.gradient_clip_val")
    if clip is not None and clip.value is not None:
        draft.put("training.clipGradNorm", bool(clip.value.text.strip("0.")), clip.source)
    _spread(call, draft, flags)
    if not draft.gaps:
        draft.doubt(f"{call.origin}: what {call.invocation.name:.80} does beside is not seen")


def _model(call: Call, draft: Draft, flags: Flags) -> None:
    if any("model.name" in gap.closed_by for gap in draft.gaps):
        return
    kind = flags.setting("model.class_path", "model")
    text = kind.value.text if kind is not None and kind.value is not None else ""
    if kind is not None and text.startswith("torchvision.models."):
        draft.put("model.source", "torchvision", kind.source)
        draft.put("model.name", text.rpartition(".")[2], kind.source)
        return
    for key in _HUB_KEYS:
        flag = flags.setting(f"model.init_args.{key}", f"model.{key}")
        word = flag.value if flag is not None else None
        name = hub_id(word.text) if word is not None and word.is_known else None
        if flag is not None and name is not None and "/" in name:
            draft.put("model.source", "huggingface", flag.source)
            draft.put("model.name", name, flag.source)
            return
    draft.gap(
        "model.name",
        code=ReasonCode.NO_MODEL,
        path=kind.field if kind is not None else call.origin,
        reason=f"{text or call.invocation.name:.80} is a person's own module",
        hint=annotation_hint("model.name"),
    )


def _spread(call: Call, draft: Draft, flags: Flags) -> None:
    """Set the strategy and its degree: Lightning starts the processes where no launcher does."""
    devices, nodes = flags.setting("trainer.devices"), flags.setting("trainer.num_nodes")
    text = devices.value.text if devices is not None and devices.value is not None else "auto"
    number = call.gpus if text in ("auto", "-1") else _counted(devices)
    if number is None or (nodes is not None and not number_of(nodes)):
        draft.integer("parallelism.dataParallel", nodes if number else devices)
        return
    total = number * (number_of(nodes) or 1)
    source = devices.source if devices is not None else "default of Lightning CLI trainer.devices"
    strategy = flags.setting("trainer.strategy.class_path", "trainer.strategy")
    name = strategy.value.text if strategy is not None and strategy.value is not None else "auto"
    plain = name.rpartition(".")[2].lower().replace("strategy", "")
    kind = next((kind for start, kind in _STRATEGIES if plain.startswith(start)), None)
    if kind is None and strategy is not None:
        draft.gap(
            "parallelism.strategy",
            code=ReasonCode.UNSUPPORTED,
            path=strategy.field,
            reason=f"{strategy.spelling} {name:.60} is no strategy that is known",
            hint=annotation_hint("parallelism.strategy"),
        )
        return
    if total == 1 and kind == "ddp":
        put_parallel(draft, "none", source=source)
        return
    implementation = "deepspeed" if (kind or "").startswith("zero") else ""
    put_parallel(draft, kind or "ddp", source=source, implementation=implementation)
    draft.put("parallelism.dataParallel", total, source)
    if plain.endswith("offload"):
        draft.put("parallelism.offload", "optimizer", source)


def _counted(flag: Flag | None) -> int | None:
    """Return how many devices a number or a list of them names."""
    if flag is None:
        return None
    if len(flag.values) > 1:
        return len(flag.values)
    text = flag.value.text if flag.value is not None else ""
    if text.startswith("["):
        return len([part for part in text.strip("[]").split(",") if part.strip()]) or None
    return number_of(flag)


def _match(invocation: Invocation, _flags: Flags) -> Match:
    """Return how sure it is: a `fit` with a configuration or the trainer's own settings."""
    words = [word.text for word in invocation.arguments]
    if not words or words[0] not in _SUBCOMMANDS:
        return Match.NO
    is_own = bool(load_recipe(_RECIPE).own & invocation.spellings)
    has_file = any(word in ("--config", "-c") or word.startswith("--config=") for word in words)
    return Match.FLAGS if is_own or has_file else Match.NO


def _is_on_cpu(flags: Flags) -> bool:
    flag = flags.get("trainer.accelerator")
    return flag is not None and flag.value is not None and flag.value.text == "cpu"


FAMILY = replace(
    family_of(_RECIPE, read, is_on_cpu=_is_on_cpu, is_closed=False),
    match=_match,
    may_claim=lambda invocation: _match(invocation, Flags()) is not Match.NO,
)
