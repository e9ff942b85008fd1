"""The TensorFlow Model Garden's official/vision/train.py, for image classification.

--experiment, --config_file, --params_override -> model, share of one GPU of the batch in the draft

Source: the recipe `tf_vision`. `global_batch_size` is of all replicas; MirroredStrategy is the
default. Experiments of other tasks, and the variants keras.applications lacks, are named gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.configs import document_flags
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.by_recipe import family_of, with_config
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.pictures import (
    leave_sharing_open,
    put_float,
    put_plain,
    put_replicas,
    unsupported_model,
    with_defaults,
    without_defaults,
)
from admission.detect.scripts.verbs import number_of, put_batch
from estimator.documents import read_document
from estimator.errors import SpecError

_OWN = "TensorFlow Model Garden train.py"
_TYPE, _DEPTH = "task.model.backbone.type", "task.model.backbone.resnet.model_id"
_MOBILE = "task.model.backbone.mobilenet.model_id"
_BATCH, _SIZE = "task.train_data.global_batch_size", "task.model.input_size"
_OPTIMIZER = "trainer.optimizer_config.optimizer.type"
_HALF, _CARDS = "runtime.mixed_precision_dtype", "runtime.num_gpus"
_STRATEGY = "runtime.distribution_strategy"
_SMOOTHING = "task.losses.label_smoothing"
_IMAGENET: Mapping[str, object] = {_BATCH: 4096, _SIZE: [224, 224, 3]}
_RESNET = {**_IMAGENET, _TYPE: "resnet", _DEPTH: 50, _OPTIMIZER: "sgd"}
_MOBILENET = {**_IMAGENET, _TYPE: "mobilenet", _MOBILE: "MobileNetV2", _OPTIMIZER: "rmsprop"}
_EXPERIMENTS: Mapping[str, Mapping[str, object]] = {
    "resnet_imagenet": _RESNET,
    "mobilenet_imagenet": {**_MOBILENET, _SMOOTHING: 0.1},
}
_FILES: Mapping[str, Mapping[str, object]] = {
    "imagenet_resnet50_gpu.yaml": {_BATCH: 2048, _HALF: "float16", _SMOOTHING: 0.1},
    "imagenet_mobilenetv2_gpu.yaml": {_BATCH: 1024, _HALF: "float16"},
}
"""What of the repository's own files differs from their experiment."""
_PRECISIONS = {"float16": "amp-fp16", "bfloat16": "amp-bf16", "float32": "fp32"}


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    told_by = source_of_default(_OWN)
    flags = _settings(call, draft)
    leave_sharing_open(call, draft)
    if flags is None:
        return
    _model(call, draft, flags)
    cards = number_of(flags.setting(_CARDS)) or call.gpus
    if draft.gaps:
        return
    strategy = flags.setting(_STRATEGY)
    way = strategy.value.text if strategy is not None and strategy.value else "mirrored"
    source = strategy.source if strategy is not None else told_by
    put_replicas(draft, cards, source=source, strategy="mirrored" if way == "mirrored" else "ddp")
    put_batch(call, draft, flags.setting(_BATCH), accumulation=cards)
    _picture(draft, flags.setting(_SIZE))
    half = flags.setting(_HALF)
    word = half.value.text if half is not None and half.value is not None else "float32"
    draft.put("training.precision", _PRECISIONS.get(word, "fp32"), half.source if half else told_by)
    put_plain(draft, source=told_by)
    optimizer = flags.setting(_OPTIMIZER)
    if optimizer is not None and optimizer.value is not None:
        name = optimizer.value.text
        momentum = {"momentum": 0.9} if name in ("sgd", "rmsprop") else {}
        draft.put("training.optimizer", {"name": name[:64], **momentum}, optimizer.source)
    put_float(draft, "training.labelSmoothing", flags.setting(_SMOOTHING))


def _settings(call: Call, draft: Draft) -> Flags | None:
    """Return the overrides over the files over the experiment, or None if a file is not seen."""
    flags = call.flags
    experiment = flags.get("experiment")
    name = draft.word("model.name", experiment)
    if experiment is None or name is None or name not in _EXPERIMENTS:
        if experiment is None or name is not None:
            unsupported_model(
                draft,
                experiment.field if experiment is not None else call.origin,
                f"--experiment {name or '':.80} is not read",
                "input.batchSize",
            )
        return None
    found = with_defaults(flags, _EXPERIMENTS[name], told_by=f"experiment {name}")
    files = flags.get("config_file")
    for word in reversed(files.values if files is not None else ()):
        known = _FILES.get(word.text.rpartition("/")[2])
        if known is not None:
            found = with_defaults(found, known, told_by=word.text[:120])
            continue
        found = with_config(replace(call, flags=found), draft, files, path=word.text)
    if draft.gaps:
        found = without_defaults(found)
    overrides = flags.get("params_override")
    for document, flag in _overrides(overrides):
        told = document_flags(document, told_by=flag.source, path=flag.field)
        found = told.over(found)
    return found


def _overrides(flag: Flag | None) -> Iterator[tuple[Mapping[str, object], Flag]]:
    """Yield what `--params_override` says: `a.b=1,c=2`, or YAML."""
    for word in flag.values if flag is not None else ():
        if flag is None:
            return
        if "=" in word.text and ":" not in word.text:
            pairs = (part.partition("=") for part in word.text.split(","))
            yield {key.strip(): value.strip() for key, _, value in pairs if key.strip()}, flag
            continue
        try:
            document = read_document(word.text)
        except SpecError:
            continue
        if isinstance(document, Mapping):
            yield document, flag


def _model(call: Call, draft: Draft, flags: Flags) -> None:
    kind, depth, mobile = (flags.setting(key) for key in (_TYPE, _DEPTH, _MOBILE))
    word = kind.value.text if kind is not None and kind.value is not None else ""
    if kind is not None and word == "resnet" and number_of(depth):
        draft.put("model.source", "keras", kind.source)
        draft.put("model.name", f"resnet{number_of(depth)}", depth.source if depth else "")
    elif kind is not None and word == "mobilenet" and mobile is not None and mobile.value:
        draft.put("model.source", "keras", kind.source)
        draft.put("model.name", mobile.value.text.lower()[:512], mobile.source)
    elif not draft.gaps:
        unsupported_model(draft, call.origin, f"the backbone {word:.60} is not read")


def _picture(draft: Draft, flag: Flag | None) -> None:
    """Set C, H, W by the configuration's H, W, C."""
    numbers = [int(word.text) for word in flag.values if word.text.isdigit()] if flag else []
    if flag is not None and len(numbers) == 3 and all(0 < n <= 1 << 14 for n in numbers):
        height, width, channels = numbers
        draft.put("input.imageSize", [channels, height, width], flag.source)
    elif flag is not None:
        draft.gap(
            "input.imageSize",
            code=ReasonCode.INVALID_SPEC,
            path=flag.field,
            reason=f"{flag.spelling} is no image size",
            hint=annotation_hint("input.imageSize"),
        )


FAMILY = family_of("tf_vision", read, is_closed=False)
