"""Swin Transformer's main.py: a configuration file by name, and flags over it.

--cfg, flags, --opts -> model, batch of one process in the draft

Source: the recipe `swin`. A file of the repository's `configs/` is named after the model and its
side; one that is mounted is read. fp16 autocast, AdamW, gradients clipped at 5.
Not modelled: SimMIM, mixtures of experts and the MLP variant, which timm lacks.
"""

from __future__ import annotations

import re
from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.by_recipe import family_of, with_config
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.pictures import (
    put_float,
    put_picture,
    put_plain,
    unsupported_model,
    without_defaults,
)
from admission.detect.scripts.verbs import put_batch, put_checkpointing

_OWN = "Swin Transformer main.py"
_FIRST = re.compile(
    r"(?P<name>swin_(tiny|small|base|large)_patch4_window(7_224|12_384))(?P<rest>[a-z0-9_]*)"
)
_SECOND = re.compile(
    r"(?P<base>swinv2_(tiny|small|base|large))_patch4_(?P<window>window[0-9to]+_[0-9to]+)"
    r"(?P<rest>[a-z0-9_]*)"
)
_LABELS_22K = 21841
_KEYS = {
    "data.batch_size": "batch_size",
    "data.img_size": "img_size",
    "model.name": "name",
    "train.accumulation_steps": "accumulation_steps",
    "train.use_checkpoint": "use_checkpoint",
    "train.weight_decay": "weight_decay",
}
"""Key of the configuration, in lower case -> the flag that means it."""


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    told_by = source_of_default(_OWN)
    flags = _settings(call, draft)
    name = flags.get("name")
    _model(call, draft, name if name is not None else call.flags.get("cfg"))
    put_batch(call, draft, flags.setting("batch_size"))
    if draft.get("input.imageSize") is None or flags.get("img_size") is not None:
        put_picture(draft, flags.setting("img_size"))
    off = flags.get("disable_amp")
    precision = "fp32" if off is not None else "amp-fp16"
    draft.put("training.precision", precision, off.source if off is not None else told_by)
    put_plain(draft, source=told_by)
    draft.integer("training.gradientAccumulationSteps", flags.setting("accumulation_steps"))
    put_checkpointing(draft, flags.get("use_checkpoint"))
    draft.put("training.optimizer", {"name": "adamw"}, told_by)
    put_float(draft, "training.optimizer.weightDecay", flags.setting("weight_decay"))
    draft.put("training.clipGradNorm", True, told_by)
    draft.put("training.labelSmoothing", 0.1, told_by)
    draft.put("runtime.cudnnBenchmark", True, told_by)
    only = flags.get("eval", "throughput")
    if only is not None:
        draft.put("phase", "infer", only.source)


def _settings(call: Call, draft: Draft) -> Flags:
    """Return the flags over `--opts` over the file, if it is seen, over the defaults."""
    cfg = call.flags.get("cfg")
    is_known = cfg is not None and cfg.value is not None and _named(cfg.value.text)
    flags = call.flags if is_known else with_config(call, draft, cfg)
    if draft.gaps:
        flags = without_defaults(flags)
    told = tuple(_renamed(flag, flag.spelling) for flag in flags.given if flag.told_by)
    pairs = call.flags.get("opts")
    words = pairs.values if pairs is not None else ()
    options = tuple(
        replace(_renamed(pairs, key.text), values=(value,))
        for key, value in zip(words[::2], words[1::2], strict=False)
        if pairs is not None
    )
    return replace(flags, given=(*told, *options, *call.flags.given))


def _renamed(flag: Flag, key: str) -> Flag:
    return replace(flag, name=_KEYS.get(key.lower(), key.lower()), spelling=key)


def _named(text: str) -> bool:
    name = text.rpartition("/")[2].removesuffix(".yaml")
    return _FIRST.fullmatch(name) is not None or _SECOND.fullmatch(name) is not None


def _model(call: Call, draft: Draft, flag: Flag | None) -> None:
    text = draft.word("model.name", flag)
    if flag is None or text is None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=call.origin,
            reason="no --cfg is given",
            hint=annotation_hint("model.name"),
        )
        return
    name = text.rpartition("/")[2].removesuffix(".yaml")
    first, second = _FIRST.fullmatch(name), _SECOND.fullmatch(name)
    found = first or second
    if found is None and draft.gaps:
        return
    if found is None:
        unsupported_model(draft, flag.field, f"{flag.spelling} {text:.120} is no model of timm")
        return
    zoo_name = first["name"] if first else f"{found['base']}_{found['window']}"
    draft.put("model.source", "timm", flag.source)
    draft.put("model.name", zoo_name, flag.source)
    side = int(re.findall(r"\d+", zoo_name)[-1])
    draft.put("input.imageSize", [3, side, side], flag.source)
    if found["rest"].endswith("22k"):
        draft.put("model.numLabels", _LABELS_22K, flag.source)


FAMILY = family_of("swin", read)
