"""torchvision's references but for classification, which `torchvision` has.

flags -> model, batch of one process, optimizer in the draft

Source: the recipes `torchvision_detection`, `torchvision_segmentation`, `torchvision_video`,
`torchvision_optical_flow`, `torchvision_similarity`.
Mixed precision is fp16. Detection is evaluated one picture at a time, the others in their batch.
Not modelled: the sizes of pictures in detection, which the data decide; frozen backbone layers.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flags
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.pictures import (
    is_off_gpu,
    put_float,
    put_picture,
    put_plain,
    put_sgd,
    unsupported_model,
)
from admission.detect.scripts.verbs import number_of, put_batch, put_choice, put_zoo_model

_CROP = 480
_FLOW_CROPS = {
    "chairs": [3, 368, 496],
    "things": [3, 400, 720],
    "sintel_skh": [3, 368, 768],
    "kitti": [3, 288, 960],
}
"""Data of optical flow -> the crops trained on."""
_FLOW_UPDATES = 12
_TRAINABLE = 3
"""Backbone layers that are trained by default, of five, where weights are loaded."""


def _read_detection(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("torchvision detection train.py")
    _model(call, draft)
    _training(draft, flags, told_by)
    _optimizer(draft, flags)
    draft.put("training.evaluation.batchSize", 1, told_by)
    trained = flags.get("trainable_backbone_layers")
    layers = number_of(trained)
    if trained is not None and layers is not None and layers != _TRAINABLE:
        draft.put("model.options", {"trainable_backbone_layers": layers}, trained.source)
    draft.warnings.append(
        f"{call.origin}: the sizes of pictures are those of the data; the model's own is taken"
    )


def _read_segmentation(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("torchvision segmentation train.py")
    _model(call, draft)
    _training(draft, flags, told_by)
    put_sgd(draft, flags, source=told_by)
    draft.put("input.imageSize", [3, _CROP, _CROP], told_by)
    auxiliary = flags.get("aux_loss")
    if auxiliary is not None:
        draft.put("model.options", {"aux_loss": True}, auxiliary.source)


def _read_video(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("torchvision video_classification train.py")
    _model(call, draft)
    _training(draft, flags, told_by)
    put_sgd(draft, flags, source=told_by)
    draft.integer("input.videoFrames", flags.setting("clip_len"))
    put_picture(draft, flags.setting("train_crop_size"))
    if not flags.has("use_deterministic_algorithms"):
        draft.put("runtime.cudnnBenchmark", True, told_by)


def _read_flow(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("torchvision optical_flow train.py")
    _model(call, draft)
    _training(draft, flags, told_by)
    draft.put("training.optimizer", {"name": "adamw"}, told_by)
    put_float(draft, "training.optimizer.weightDecay", flags.setting("weight_decay"))
    draft.put("training.clipGradNorm", True, told_by)
    draft.put("runtime.cudnnBenchmark", True, told_by)
    data = flags.get("train_dataset")
    if data is None:
        draft.put("phase", "infer", told_by)
        return
    put_choice(draft, "input.imageSize", data, _FLOW_CROPS, what="data set")
    updates = flags.setting("num_flow_updates")
    if updates is not None and number_of(updates) != _FLOW_UPDATES:
        draft.doubt(f"{updates.field}: {updates.spelling} is read as {_FLOW_UPDATES}")


def _read_similarity(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("torchvision similarity train.py")
    unsupported_model(draft, call.origin, "references/similarity trains a network of its own")
    labels, samples = flags.setting("labels_per_batch"), flags.setting("samples_per_label")
    draft.integer("input.batchSize", labels)
    each, number = number_of(samples), draft.get("input.batchSize")
    if samples is not None and each and number:
        draft.put("input.batchSize", number * each, samples.source)
    elif number:
        draft.integer("input.batchSize", samples)
    draft.put("input.imageSize", [3, 224, 224], told_by)
    _training(draft, flags, told_by)
    draft.put("training.optimizer", {"name": "adam"}, told_by)


def _model(call: Call, draft: Draft) -> None:
    put_zoo_model(draft, call.flags.setting("model"), zoo="torchvision")
    put_batch(call, draft, call.flags.setting("batch_size"))
    flag = call.flags.get("test_only")
    if flag is None:
        return
    if call.ranks.total == 1:
        draft.put("phase", "infer", flag.source)
        return
    draft.gap(
        "phase",
        code=ReasonCode.UNSUPPORTED,
        path=flag.field,
        reason="--test-only on several GPUs evaluates under DDP, which is not read yet",
        hint=annotation_hint("phase"),
    )


def _training(draft: Draft, flags: Flags, told_by: str) -> None:
    put_plain(draft, source=told_by)
    mixed = flags.get("amp")
    precision = "amp-fp16" if mixed is not None else "fp32"
    draft.put("training.precision", precision, mixed.source if mixed is not None else told_by)
    fixed = flags.get("use_deterministic_algorithms")
    if fixed is not None:
        draft.put("runtime.cudnnDeterministic", True, fixed.source)


def _optimizer(draft: Draft, flags: Flags) -> None:
    flag = flags.setting("opt")
    name = draft.word("training.optimizer", flag)
    if flag is None or name is None:
        return
    if name.lower().startswith("sgd"):
        put_sgd(draft, flags, source=flag.source, nesterov="nesterov" in name.lower())
        return
    draft.put("training.optimizer", {"name": name.lower()[:64]}, flag.source)
    put_float(draft, "training.optimizer.weightDecay", flags.setting("weight_decay", "wd"))


FAMILIES = tuple(
    family_of(name, read, is_on_cpu=is_off_gpu)
    for name, read in (
        ("torchvision_detection", _read_detection),
        ("torchvision_segmentation", _read_segmentation),
        ("torchvision_video", _read_video),
        ("torchvision_optical_flow", _read_flow),
        ("torchvision_similarity", _read_similarity),
    )
)
