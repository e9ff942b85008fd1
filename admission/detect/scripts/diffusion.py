"""The training examples of diffusers: `train_dreambooth_lora.py --resolution 512 …`.

    flags -> JobSpec

Trained weights are fp32 beside `--mixed_precision`, frozen ones are held in it: a LoRA's base too.
Source: the recipe `diffusers.yaml`, `diffusion_scripts.py`.
Not modelled: cached latents, parts on the host, the text encoder's own adapter.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.invocation import Invocation
from admission.detect.recipes import load_recipe
from admission.detect.scripts.adapters import put_number
from admission.detect.scripts.by_recipe import match_of
from admission.detect.scripts.diffusion_scripts import SCRIPTS, DiffusionScript
from admission.detect.scripts.family import Call, Family, Match, source_of_default
from admission.detect.scripts.strangers import note_strangers
from admission.detect.scripts.verbs import number_of, put_checkpointing, put_hub_model

NAME = "diffusers"
_IMAGES = 2
"""Images of a sample with prior preservation: one of the instance, one of its class."""
_PRECISIONS = ("fp16", "bf16")
_OPTIMIZERS = {"adamw": "adamw", "adam": "adam", "prodigy": "prodigy"}


def match(invocation: Invocation, flags: Flags) -> Match:
    """Return how sure it is: one of its scripts with its name for the model, or its flags."""
    if not flags.has("pretrained_model_name_or_path"):
        return Match.NO
    if _stem(invocation) in SCRIPTS:
        return Match.PLACE
    return Match.FLAGS if flags.has("train_batch_size") else Match.NO


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags, script = call.flags, SCRIPTS.get(_stem(call.invocation))
    name = call.invocation.name
    draft.put("framework", "pytorch", f"{call.invocation.where} {name}")
    model = flags.get("pretrained_model_name_or_path")
    if put_hub_model(draft, model) is not None and model is not None:
        draft.put("model.source", "diffusers", model.source)
    draft.put("model.task", "text-to-image", name)
    revision = flags.get("revision")
    if revision is not None and revision.value is not None and revision.value.is_known:
        draft.put("model.revision", revision.value.text, revision.source)
    _put_sizes(call, draft, script)
    _put_adapter(call, draft, script)
    _put_precision(call, draft)
    _put_training(call, draft)
    if script is not None and script.part:
        draft.doubt(f"{call.origin}: {name:.80} trains {script.part}, which the spec cannot say")
    note_strangers(call, draft, flags.foreign, is_own=script is not None)


def _stem(invocation: Invocation) -> str:
    return invocation.name.removesuffix(".py")


def _put_sizes(call: Call, draft: Draft, script: DiffusionScript | None) -> None:
    """Set batch and resolution; a script that is not known has no certain defaults."""
    flags, source = call.flags, source_of_default(call.invocation.name)
    batch = flags.get("train_batch_size")
    if not draft.integer("input.batchSize", batch) and script is not None:
        draft.put("input.batchSize", script.batch, source)
    size = flags.get("resolution")
    side = number_of(size)
    if size is not None and side:
        draft.put("input.imageSize", [3, side, side], size.source)
    elif size is not None:
        text = size.value.text if size.value is not None else ""
        draft.gap(
            "input.imageSize",
            code=size.value.code
            if size.value and not size.value.is_known
            else ReasonCode.INVALID_SPEC,
            path=size.field,
            reason=f"{size.spelling} {text:.60} is no whole number of pixels",
            hint=annotation_hint("input.imageSize"),
        )
    elif script is not None:
        draft.put("input.imageSize", [3, script.resolution, script.resolution], source)
    prior = flags.get("with_prior_preservation")
    if prior is not None and prior.is_on:
        draft.put("input.imagesPerSample", _IMAGES, prior.source)
    draft.integer(
        "training.gradientAccumulationSteps", flags.setting("gradient_accumulation_steps")
    )


def _put_adapter(call: Call, draft: Draft, script: DiffusionScript | None) -> None:
    """Set the LoRA adapter that a script trains by its name; alpha is the rank unless given."""
    if script is None or script.rank is None:
        return
    name = call.invocation.name
    draft.put("adapter", {}, name)
    draft.put("adapter.type", "lora", name)
    rank, alpha = call.flags.get("rank"), call.flags.get("lora_alpha")
    if not draft.integer("adapter.rank", rank):
        draft.put("adapter.rank", script.rank, source_of_default(name))
    number = draft.get("adapter.rank")
    if alpha is not None:
        put_number(draft, "adapter.alpha", alpha)
    elif isinstance(number, int):
        draft.put("adapter.alpha", float(number), f"{source_of_default(name)}: the rank")
    put_number(draft, "adapter.dropout", call.flags.get("lora_dropout"), most=1.0)


def _put_precision(call: Call, draft: Draft) -> None:
    """Set the precision: the script's own flag counts before the launcher's."""
    path = "training.precision"
    flag: Flag | None = call.flags.get("mixed_precision") or call.invocation.launch.precision
    text = draft.word(path, flag)
    if flag is not None and text is None:
        return
    if flag is not None and text in _PRECISIONS:
        draft.put(path, text if draft.get("adapter") else f"amp-{text}", flag.source)
        return
    tf32 = call.flags.get("allow_tf32")
    if tf32 is not None and tf32.is_on:
        draft.put(path, "tf32", tf32.source)
    else:
        source = flag.source if flag is not None else source_of_default(call.invocation.name)
        draft.put(path, "fp32", source)


def _put_training(call: Call, draft: Draft) -> None:
    """Set optimizer, checkpointing, clipping and the averaged copy."""
    flags, name = call.flags, call.invocation.name
    flag, small = flags.get("optimizer"), flags.get("use_8bit_adam")
    text = draft.word("training.optimizer", flag) if flag is not None else "adamw"
    optimizer = _OPTIMIZERS.get(text.lower(), text.lower()[:64]) if text else None
    if optimizer is not None:
        source = flag.source if flag is not None else source_of_default(name)
        draft.put("training.optimizer", {"name": optimizer}, source)
    if small is not None and small.is_on and optimizer in ("adamw", "adam"):
        draft.put("training.optimizer", {"name": optimizer, "bits": 8}, small.source)
    put_checkpointing(draft, flags.setting("gradient_checkpointing"))
    norm = flags.setting("max_grad_norm")
    if norm is not None:
        draft.put("training.clipGradNorm", True, norm.source)
    average, away = flags.get("use_ema"), flags.get("offload_ema")
    if average is not None and average.is_on and (away is None or not away.is_on):
        draft.put("training.ema", True, average.source)


def _flags(invocation: Invocation) -> Flags:
    recipe = load_recipe(NAME)
    flags = invocation.flags(recipe.options)
    return Flags(
        given=flags.given,
        positional=flags.positional,
        foreign=flags.foreign,
        defaults=recipe.defaults_for(None),
    )


FAMILY = Family(
    name="diffusers",
    flags=_flags,
    match=match,
    read=read,
    may_claim=lambda invocation: (
        _stem(invocation) in SCRIPTS or match_of(invocation, load_recipe(NAME)) is not Match.NO
    ),
)
