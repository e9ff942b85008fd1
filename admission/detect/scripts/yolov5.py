"""YOLOv5's train.py and those made of it, YOLOv7's among them.

flags -> model, share of one process of the batch, optimizer in the draft

Source: the recipe `yolov5`. The batch is one of all processes; without a launcher it is split over
all cards by DataParallel. fp16 autocast, Nesterov's SGD, a weight-averaged copy, and as many
batches a step as make up 64 pictures.
Not modelled: `--multi-scale` beyond a doubt, mosaic borders, `--evolve`.
"""

from __future__ import annotations

from dataclasses import replace

from admission.detect.draft import Draft
from admission.detect.flags import Flags
from admission.detect.invocation import Invocation
from admission.detect.recipes import load_recipe
from admission.detect.scripts.by_recipe import family_of, match_of
from admission.detect.scripts.family import Call, Match, source_of_default
from admission.detect.scripts.pictures import (
    is_off_gpu,
    is_unset,
    listed_devices,
    note_likeness,
    put_float,
    put_picture,
    put_plain,
    put_replicas,
)
from admission.detect.scripts.verbs import put_zoo_model
from admission.detect.scripts.yolo_models import (
    model_of,
    put_accumulation,
    put_total_batch,
    put_validation,
    put_yolo_model,
)

_NAME = "yolov5"
_OWN = "YOLOv5 train.py"
_IMAGE = "/usr/src/app"
"""The folder of Ultralytics' images; other images have a folder of that name too."""
_CLASSIFY = "classify/"
"""Another script with other flags."""
_NOMINAL = 64
_MOMENTUM = 0.937
_OPTIMIZERS = {"adam": "adam", "adamw": "adamw"}


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags, told_by = call.flags, source_of_default(_OWN)
    cfg = flags.get("cfg")
    put_yolo_model(draft, flags.setting("weights") if is_unset(cfg) or cfg is None else cfg)
    cards = 1
    if not call.ranks.is_distributed:
        cards = listed_devices(flags.get("device")) or call.gpus
        put_replicas(draft, cards, source=f"{_OWN}, one process on all GPUs", strategy="dp")
    processes = call.ranks.total * cards
    whole = put_total_batch(call, draft, flags.setting("batch_size"), processes=processes)
    put_picture(draft, flags.setting("imgsz", "img", "img_size"))
    draft.put("training.precision", "amp-fp16", told_by)
    draft.put("training.gradientCheckpointing", "none", told_by)
    put_accumulation(draft, whole, _NOMINAL, source=told_by)
    _optimizer(draft, flags, told_by)
    draft.put("training.ema", True, told_by)
    if not flags.is_on("noval", "notest"):
        put_validation(draft, source=told_by)
    draft.put("runtime.cudnnDeterministic", True, told_by)
    _doubts(call, draft)


def _optimizer(draft: Draft, flags: Flags, told_by: str) -> None:
    flag = flags.get("optimizer", "adam")
    name = "sgd"
    if flag is not None and flag.name == "adam":
        name = "adam"
    elif flag is not None:
        name = _OPTIMIZERS.get((draft.word("training.optimizer", flag) or "").lower(), "sgd")
    source = flag.source if flag is not None else told_by
    momentum = {"momentum": _MOMENTUM, "nesterov": True} if name == "sgd" else {}
    draft.put("training.optimizer", {"name": name, **momentum}, source)


def _read_classifier(call: Call, draft: Draft) -> None:
    """Fill the draft for classify/train.py: no accumulation, Adam by default, clipped gradients."""
    flags, told_by = call.flags, source_of_default("YOLOv5 classify/train.py")
    model = flags.setting("model")
    text = model.value.text if model is not None and model.value is not None else ""
    if "." in text or model_of(text) is not None:
        put_yolo_model(draft, model)
    else:
        put_zoo_model(draft, model, zoo="torchvision")
    whole = flags.setting("batch_size", "batch")
    put_total_batch(call, draft, whole, processes=call.ranks.total)
    put_picture(draft, flags.setting("imgsz", "img", "img_size"))
    draft.put("training.precision", "amp-fp16", told_by)
    put_plain(draft, source=told_by)
    flag = flags.setting("optimizer")
    name = draft.word("training.optimizer", flag)
    if flag is not None and name is not None:
        draft.put("training.optimizer", {"name": name.lower()[:64]}, flag.source)
    put_float(draft, "training.labelSmoothing", flags.setting("label_smoothing"))
    draft.put("training.clipGradNorm", True, told_by)
    draft.put("training.ema", True, told_by)
    put_validation(draft, source=told_by)


def _doubts(call: Call, draft: Draft) -> None:
    for name, what in (
        ("multi_scale", "varies the size of the pictures by half"),
        ("evolve", "trains many times with other settings"),
        ("freeze", "freezes layers"),
        ("image_weights", "draws pictures anew"),
    ):
        flag = call.flags.get(name)
        is_none = flag is not None and all(word.text == "0" for word in flag.values)
        if flag is not None and (not is_none or not flag.values):
            draft.doubt(f"{flag.field}: {flag.spelling} {what}, which is not read")
    note_likeness(call, draft, _NAME)


def _match(invocation: Invocation, flags: Flags) -> Match:
    """Return how sure it is: by the folder, or by weights that only YOLO has."""
    if invocation.is_module or _CLASSIFY in invocation.location:
        return Match.NO
    names = (flags.get("weights"), flags.get("cfg"))
    words = [flag.value.text for flag in names if flag is not None and flag.value is not None]
    is_named = any("yolo" in word.lower() and model_of(word) is not None for word in words)
    place = match_of(invocation, load_recipe(_NAME))
    in_image = _IMAGE in invocation.location and "yolo" not in invocation.location
    if place is Match.PLACE and (not in_image or is_named):
        return Match.PLACE
    return Match.FLAGS if is_named and not flags.foreign else Match.NO


def _may_claim(invocation: Invocation) -> bool:
    recipe = load_recipe(_NAME)
    return not invocation.is_module and invocation.name in recipe.scripts | recipe.unique


FAMILIES = (
    replace(family_of(_NAME, read, is_on_cpu=is_off_gpu), match=_match, may_claim=_may_claim),
    family_of("yolov5_classify", _read_classifier, is_on_cpu=is_off_gpu),
)
