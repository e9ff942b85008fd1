"""Ultralytics' `yolo` command.

`[TASK] MODE key=value…` -> model, share of one process of the batch, optimizer in the draft

Source: the recipe `ultralytics`. It starts its own processes, one for each card that `device`
lists; the batch is one of all of them.
Not modelled: `cache`, rectangular pictures, the trackers.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.by_recipe import family_of, with_config
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.pictures import (
    is_off_gpu,
    leave_sharing_open,
    listed_devices,
    put_float,
    put_picture,
    put_replicas,
    source_of,
    without_defaults,
)
from admission.detect.scripts.verbs import number_of
from admission.detect.scripts.yolo_models import (
    put_accumulation,
    put_total_batch,
    put_validation,
    put_yolo_model,
)

_NAME = "ultralytics"
_TRAIN = "train"
_MODES = (_TRAIN, "val", "predict", "export", "track", "benchmark")
_TASKS = ("detect", "segment", "classify", "pose", "obb")
_CLASSIFY = "classify"
_SIDE_CLASSIFY = 224
"""What the classification trainer takes where no `imgsz` is given."""
_NOMINAL = 64


def read(call: Call, draft: Draft) -> None:
    """Fill the draft, if the command trains."""
    told_by = source_of_default(_NAME)
    flags = with_config(call, draft, call.flags.get("cfg"))
    if draft.gaps:
        leave_sharing_open(call, draft)
        flags = without_defaults(flags)
    mode = _word(flags, "mode", _MODES)
    if mode not in (_TRAIN, ""):
        draft.is_idle = True
        draft.warnings.append(f"{call.origin}: yolo {mode} trains nothing")
        return
    task = _word(flags, "task", _TASKS)
    name = _model(call, draft, flags.get("model"))
    cards = _cards(call, draft, flags)
    whole = put_total_batch(call, draft, flags.setting("batch"), processes=cards)
    is_classifier = task == _CLASSIFY or (name or "").endswith("-cls")
    if is_classifier and not flags.has("imgsz"):
        draft.put("input.imageSize", [3, _SIDE_CLASSIFY, _SIDE_CLASSIFY], told_by)
    else:
        put_picture(draft, flags.setting("imgsz"))
    _training(draft, flags, whole, told_by)
    _optimizer(call, draft, flags)


def _word(flags: Flags, name: str, known: tuple[str, ...]) -> str:
    """Return the task or mode: `mode=train`, or the word itself."""
    flag = flags.get(name)
    if flag is not None and flag.value is not None:
        return flag.value.text
    return next((word.text for word in flags.positional if word.text in known), "")


def _model(call: Call, draft: Draft, flag: Flag | None) -> str | None:
    """Set the model. Without one it depends on the release, from yolov8n to yolo26n."""
    if flag is not None:
        return put_yolo_model(draft, flag)
    draft.gap(
        "model.name",
        code=ReasonCode.NO_MODEL,
        path=call.origin,
        reason="no model= is given; which one is taken depends on the release",
        hint=annotation_hint("model.name"),
    )
    return None


def _cards(call: Call, draft: Draft, flags: Flags) -> int:
    """Return how many processes share the batch, and set them."""
    if call.ranks.is_distributed:
        return call.ranks.total
    flag = flags.setting("device")
    cards = listed_devices(flag) or 1
    put_replicas(draft, cards, source=source_of(flag, source_of_default(_NAME)))
    return cards


def _training(draft: Draft, flags: Flags, whole: int | None, told_by: str) -> None:
    mixed = flags.setting("amp")
    if mixed is not None:
        draft.put("training.precision", "amp-fp16" if mixed.is_on else "fp32", mixed.source)
    draft.put("training.gradientCheckpointing", "none", told_by)
    nominal = number_of(flags.setting("nbs")) or _NOMINAL
    put_accumulation(draft, whole, nominal, source=told_by)
    draft.put("training.ema", True, told_by)
    draft.put("training.clipGradNorm", True, told_by)
    evaluates = flags.setting("val")
    if evaluates is not None and evaluates.is_on:
        put_validation(draft, source=evaluates.source)
    fixed = flags.setting("deterministic")
    if fixed is not None and fixed.is_on:
        draft.put("runtime.cudnnDeterministic", True, fixed.source)
    compiled = flags.setting("compile")
    if compiled is not None and compiled.is_on:
        draft.put("training.compile", True, compiled.source)
    for name, what in (("multi_scale", "varies the size of the pictures"), ("freeze", "freezes")):
        flag = flags.setting(name)
        if flag is not None and flag.is_on and (flag.value is None or flag.value.text != "0.0"):
            draft.doubt(f"{flag.field}: {flag.spelling} {what}, which is not read")


def _optimizer(call: Call, draft: Draft, flags: Flags) -> None:
    """Set the optimizer; `auto` is chosen by how many steps the data make."""
    flag = flags.setting("optimizer")
    name = draft.word("training.optimizer", flag)
    if flag is None or name is None:
        return
    if name.lower() == "auto":
        draft.doubt(
            f"{call.origin}: optimizer auto is SGD or AdamW by the number of steps, "
            "which the data decide",
            "training.optimizer",
        )
        return
    name = name.lower()
    draft.put("training.optimizer", {"name": name[:64]}, flag.source)
    if name == "sgd":
        put_float(draft, "training.optimizer.momentum", flags.setting("momentum"))
        draft.put("training.optimizer.nesterov", True, flag.source)


FAMILY = family_of(_NAME, read, is_on_cpu=is_off_gpu, is_closed=False)
