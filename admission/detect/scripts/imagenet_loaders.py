"""ImageNet training with other loaders: DALI's and apex's main.py, and ffcv-imagenet.

flags -> model, batch of one process in the draft

Source: the recipes `dali_imagenet` and `ffcv_imagenet`.
Not modelled: DALI's own memory on the GPU; ffcv's blurred pooling, which is a doubt.
"""

from __future__ import annotations

from admission.detect.draft import Draft
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.by_recipe import family_of, with_config
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.pictures import (
    leave_sharing_open,
    put_float,
    put_picture,
    put_plain,
    put_replicas,
    put_sgd,
    source_of,
    with_defaults,
    without_defaults,
)
from admission.detect.scripts.verbs import number_of, put_batch, put_choice, put_zoo_model

_SIDE = 224
_APEX = {"o0": "fp32", "o1": "amp-fp16", "o2": "fp16", "o3": "fp16"}
"""apex's levels: O2 and O3 have weights in fp16, O2 keeps an fp32 copy."""
_FFCV = {"model.arch": "resnet50", "training.batch_size": 512, "dist.world_size": 8}
_FFCV_SMALL = {"model.arch": "resnet18", "training.batch_size": 1024, "dist.world_size": 1}
_FFCV_SHARED = {"resolution.max_res": 192, "training.use_blurpool": 1}
_FFCV_FILES = {
    f"rn{depth}_{epochs}_epochs.yaml": {
        **(_FFCV if depth == 50 else _FFCV_SMALL),
        **_FFCV_SHARED,
        "training.distributed": int(depth == 50),
    }
    for depth in (18, 50)
    for epochs in (16, 24, 32, 40, 56, 88)
}
"""What of the repository's own files moves memory."""


def _read_dali(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("ImageNet with DALI or apex")
    put_zoo_model(draft, flags.setting("arch"), zoo="torchvision")
    put_batch(call, draft, flags.setting("batch_size"))
    draft.put("input.imageSize", [3, _SIDE, _SIDE], told_by)
    level = flags.get("opt_level")
    if level is None:
        draft.put("training.precision", "fp32", told_by)
    elif put_choice(draft, "training.precision", level, _APEX, what="level of apex") == "fp16":
        is_copied = level.value is not None and level.value.text.lower() == "o2"
        draft.put("training.masterWeights", is_copied, level.source)
    put_plain(draft, source=told_by)
    put_sgd(draft, flags, source=told_by)
    fixed, layout = flags.get("deterministic"), flags.get("channels_last")
    if fixed is not None:
        draft.put("runtime.cudnnDeterministic", True, fixed.source)
    else:
        draft.put("runtime.cudnnBenchmark", True, told_by)
    if layout is not None and layout.value is not None and layout.value.text:
        draft.put("runtime.memoryFormat", "channels_last", layout.source)
    only = flags.get("evaluate")
    if only is not None:
        draft.put("phase", "infer", only.source)


def _read_ffcv(call: Call, draft: Draft) -> None:
    told_by = source_of_default("ffcv-imagenet")
    flags = _settings(call, draft)
    put_zoo_model(draft, flags.setting("model.arch"), zoo="torchvision")
    put_batch(call, draft, flags.setting("training.batch_size"))
    put_picture(draft, flags.setting("resolution.max_res"))
    draft.put("training.precision", "amp-fp16", told_by)
    put_plain(draft, source=told_by)
    put_sgd(
        draft,
        flags,
        source=told_by,
        momentum=("training.momentum",),
        decay=("training.weight_decay",),
    )
    put_float(draft, "training.labelSmoothing", flags.setting("training.label_smoothing"))
    draft.integer("training.evaluation.batchSize", flags.setting("validation.batch_size"))
    draft.put("runtime.memoryFormat", "channels_last", told_by)
    shared, size = flags.setting("training.distributed"), flags.setting("dist.world_size")
    if shared is not None and shared.is_on and size is not None:
        put_replicas(draft, number_of(size) or 1, source=size.source)
    blurred = flags.setting("training.use_blurpool")
    if blurred is not None and blurred.is_on:
        draft.doubt(f"{call.origin}: blurred pooling before strided convolutions is not counted")
    only = flags.setting("training.eval_only")
    if only is not None and only.is_on:
        draft.put("phase", "infer", only.source)


def _settings(call: Call, draft: Draft) -> Flags:
    """Return the flags over those of the file: mounted, or known by its name."""
    file: Flag | None = call.flags.get("config_file")
    word = file.value if file is not None else None
    known = _FFCV_FILES.get(word.text.rpartition("/")[2]) if word is not None else None
    if known is not None:
        return with_defaults(
            call.flags,
            {**known, "training.momentum": 0.9, "training.weight_decay": 0.0001},
            told_by=source_of(file, ""),
        )
    flags = with_config(call, draft, file)
    if not draft.gaps:
        return flags
    leave_sharing_open(call, draft)
    return without_defaults(flags)


FAMILIES = (
    family_of("dali_imagenet", _read_dali),
    family_of("ffcv_imagenet", _read_ffcv),
)
