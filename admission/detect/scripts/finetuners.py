"""The trainers of two published Argo workflows, both called `finetuner.py`.

    --model, --bs, --zero-stage … -> JobSpec; --model, --batch_size, --resolution … -> JobSpec

Their workflow stores the model in a volume before, under `/VOLUME/models/ORG/NAME`: where the
object does not tell what was fetched there, the Hub id is the end of that path. Whether something
else lies there now is not seen: a doubt.
Source: the recipes `text_finetuner.yaml` and `image_finetuner.yaml`. What nobody says and only the
image's own copy decides (precision, optimizer) is left out.
"""

from __future__ import annotations

from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.draft import Draft
from admission.detect.flags import Flag, Flags
from admission.detect.invocation import Invocation
from admission.detect.names import hub_id
from admission.detect.recipes import load_recipe
from admission.detect.scripts.by_recipe import Reader, family_of, match_of
from admission.detect.scripts.family import Call, Family, Match
from admission.detect.scripts.verbs import number_of, put_checkpointing, put_hub_model
from admission.detect.words import Word

_FOLDER = "models"
_BY_ITSELF = "-1"
_STRATEGIES = {"0": "ddp", "1": "zero1", "2": "zero2", "3": "zero3"}
_IMAGES = 2
"""Images of a DreamBooth sample: one of the subject, one of its class."""


def read_text(call: Call, draft: Draft) -> None:
    """Fill the draft of a language model."""
    flags = call.flags
    _put_model(draft, flags.setting("model"), source="huggingface")
    draft.integer("input.sequenceLength", flags.setting("context_size"))
    batch = flags.setting("bs")
    word = batch.value if batch is not None else None
    if batch is not None and word is not None and word.text == _BY_ITSELF:
        draft.gap(
            "input.batchSize",
            code=ReasonCode.NO_BATCH,
            path=batch.field if batch.path else call.origin,
            reason=f"{batch.spelling} {_BY_ITSELF}: the trainer fits its batch to the free memory "
            "of the card when it starts",
            hint="give --bs a number, or state it in the annotation vramgate.dev/spec: "
            "input: {batchSize: …}",
        )
    elif draft.integer("input.batchSize", batch):
        draft.integer("training.gradientAccumulationSteps", flags.setting("gradients"))
        draft.put("training.gradientCheckpointing", "full", "finetuner.py")
    half = flags.setting("fp16")
    if half is not None and half.is_on:
        draft.put("training.precision", "fp16", half.source)
    _put_stage(draft, flags.setting("zero_stage"))


def read_images(call: Call, draft: Draft) -> None:
    """Fill the draft of a diffusion model."""
    flags = call.flags
    _put_model(draft, flags.setting("model"), source="diffusers")
    draft.put("model.task", "text-to-image", "finetuner.py")
    draft.integer("input.batchSize", flags.setting("batch_size"))
    size = flags.setting("resolution")
    side = number_of(size)
    if size is not None and side:
        draft.put("input.imageSize", [3, side, side], size.source)
    classes = flags.setting("class_dataset")
    if classes is not None and classes.value is not None and classes.value.text:
        draft.put("input.imagesPerSample", _IMAGES, classes.source)
    put_checkpointing(draft, flags.setting("gradient_checkpointing"))
    small, average = flags.setting("use_8bit_adam"), flags.setting("use_ema")
    if small is not None:
        bits = {"bits": 8} if small.is_on else {}
        draft.put("training.optimizer", {"name": "adamw", **bits}, small.source)
    if average is not None and average.is_on:
        draft.put("training.ema", True, average.source)
    half = flags.setting("fp16")
    if half is not None and half.is_on:
        draft.put("training.precision", "amp-fp16", half.source)


def _put_model(draft: Draft, flag: Flag | None, *, source: str) -> None:
    """Set the model by its Hub id, or by the folder that its workflow fetched it into."""
    word = flag.value if flag is not None else None
    stored = _stored_id(word, draft) if word is not None else None
    if flag is None or stored is None:
        if put_hub_model(draft, flag) is not None and flag is not None:
            draft.put("model.source", source, flag.source)
        return
    draft.put("model.source", source, flag.source)
    draft.put("model.name", stored, flag.source)
    draft.doubt(
        f"{flag.field}: {flag.spelling} is a path on a volume; it is taken for the model of the "
        f"Hub, {stored:.120}, that its workflow stores there",
        "model.name",
    )


def _stored_id(word: Word, draft: Draft) -> str | None:
    """Return ORG/NAME of `/VOLUME/models/ORG/NAME`, unless what was fetched there is told."""
    parts = word.text.rstrip("/").split("/")
    is_told = word.text.rstrip("/") in draft.models
    if is_told or not word.is_known or not word.text.startswith("/") or len(parts) < 4:
        return None
    return hub_id("/".join(parts[-2:])) if parts[-3] == _FOLDER else None


def _put_stage(draft: Draft, flag: Flag | None) -> None:
    text = draft.word("parallelism.strategy", flag)
    if flag is None or text is None:
        return
    strategy = _STRATEGIES.get(text)
    if strategy is None:
        draft.gap(
            "parallelism.strategy",
            code=ReasonCode.UNSUPPORTED,
            path=flag.field,
            reason=f"{flag.spelling} {text:.20} is no ZeRO stage",
        )
        return
    draft.put("parallelism.strategy", strategy, flag.source)
    draft.put("parallelism.implementation", "deepspeed", flag.source)
    if strategy != "ddp":
        draft.doubt(
            "finetuner.py: the image's ds_config.json, which is not seen, may offload to the host",
            "parallelism.offload",
        )


def _named(name: str, read: Reader) -> Family:
    """Return the family of one of the two: by its script's name and flags of its own."""

    def match(invocation: Invocation, _flags: Flags) -> Match:
        recipe = load_recipe(name)
        is_own = invocation.name in recipe.scripts and not invocation.is_module
        found = match_of(invocation, recipe)
        return Match.PLACE if is_own and found is not Match.NO else Match.NO

    return replace(family_of(name, read), match=match)


FAMILIES = (_named("text_finetuner", read_text), _named("image_finetuner", read_images))
