"""The models YOLO programs know by name, and what their trainers have in common.

file name of weights or of a model's YAML -> model name

A name that is published is downloaded where it is missing; any other file is the user's own.
"""

from __future__ import annotations

import re

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag
from admission.detect.scripts.family import Call
from admission.detect.scripts.pictures import float_of
from admission.detect.scripts.verbs import Scope, number_of, put_batch

ZOO = "ultralytics"
_PARTS = (
    "cls|seg|pose|obb|sem|u|oiv7|world|worldv2|spp|tiny|silu|csp|p2|p34|p6|p7|w6|e6|e6e|d6|x|"
    "ghost|transformer|panet|fpn|bifpn|leakyrelu"
)
"""What may follow the size, joined by dashes."""
_NAMES = re.compile(
    rf"yolov?\d{{1,2}}([nsmblxcte])?\d?u?(-({_PARTS}))*|yolor(-({_PARTS}))+|"
    r"yoloe-(v8|11|26)[nsmlx]-seg(-pf)?|rtdetr-(l|x|resnet50|resnet101)"
)
_SUFFIXES = (".pt", ".pth", ".yaml", ".yml")


def model_of(text: str) -> str | None:
    """Return the published model that the path *text* names; None for a file of one's own."""
    name = text.rstrip("/").rpartition("/")[2].lower()
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name if _NAMES.fullmatch(name) else None


def put_yolo_model(draft: Draft, flag: Flag | None) -> str | None:
    """Set the model of *flag*; a file of one's own may be any of them, which is a gap."""
    text = draft.word("model.name", flag)
    if flag is None or text is None:
        return None
    name = model_of(text)
    if name is None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=flag.field,
            reason=f"{flag.spelling} {text:.120} is a file that only the container sees; which "
            "model is in it is not known",
            hint="name the model in the annotation vramgate.dev/spec: "
            "model: {source: ultralytics, name: yolo11n}",
        )
        return None
    draft.put("model.source", ZOO, flag.source)
    draft.put("model.name", name, flag.source)
    return name


def put_total_batch(call: Call, draft: Draft, flag: Flag | None, *, processes: int) -> int | None:
    """Set the share of one of *processes* of a batch counted over all; return the whole one.

    -1, and a fraction of the card, are a batch that the trainer looks for itself: a gap.
    """
    number = float_of(flag)
    if flag is not None and number is not None and (number < 0 or 0 < number < 1):
        draft.gap(
            "input.batchSize",
            code=ReasonCode.NO_BATCH,
            path=flag.field,
            reason=f"{flag.spelling} {flag.value.text if flag.value else '':.20} lets the trainer "
            "look for a batch that fills the card",
            hint=annotation_hint("input.batchSize"),
        )
        return None
    put_batch(call, draft, flag, scope=Scope.PROCESS, accumulation=processes)
    return number_of(flag)


def put_accumulation(draft: Draft, whole: int | None, nominal: int, *, source: str) -> None:
    """Set the batches before a step: as many as make up the *nominal* batch, rounded."""
    if whole:
        draft.put("training.gradientAccumulationSteps", max(round(nominal / whole), 1), source)


def put_validation(draft: Draft, *, source: str) -> None:
    """Set the evaluation between epochs: batches of twice the size."""
    share = draft.get("input.batchSize")
    if isinstance(share, int):
        draft.put("training.evaluation.batchSize", 2 * share, source)
