"""The training scripts of DeiT, MAE and ConvNeXt.

flags -> model, batch of one process, optimizer in the draft

Source: the recipes `deit`, `mae`, `convnext`. They were made of one another: the batch is one of a
process, AdamW, mixup, and fp16 autocast, which only ConvNeXt leaves off by default.
Not modelled: MAE's pre-training model, which timm lacks; the estimator says so.
"""

from __future__ import annotations

from admission.detect.draft import Draft
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.pictures import (
    float_of,
    is_off_gpu,
    put_float,
    put_picture,
    put_plain,
    put_sgd,
    with_defaults,
)
from admission.detect.scripts.verbs import put_batch, put_zoo_model

_MAE = {
    "main_pretrain.py": {"model": "mae_vit_large_patch16", "batch_size": 64},
    "main_finetune.py": {"model": "vit_large_patch16", "batch_size": 64, "smoothing": 0.1},
    "main_linprobe.py": {"model": "vit_large_patch16", "batch_size": 512},
}
"""Script -> its defaults."""
_MAE_SIDE = 224
"""In the names timm has for MAE's classifiers."""
_PRETRAIN, _PROBE = "main_pretrain.py", "main_linprobe.py"


def _read_deit(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("DeiT main.py")
    put_zoo_model(draft, flags.setting("model"), zoo="timm")
    _shared(call, draft, flags, told_by)
    draft.put("training.precision", "amp-fp16", told_by)
    put_plain(draft, source=told_by)
    _optimizer(draft, flags)
    put_float(draft, "training.labelSmoothing", flags.setting("smoothing"))
    if not flags.has("no_model_ema") and not flags.has("model_ema_force_cpu"):
        draft.put("training.ema", True, told_by)
    _evaluation(draft, told_by)
    _clip(draft, flags)
    kind, teacher = flags.get("distillation_type"), flags.get("teacher_model")
    if kind is not None and kind.value is not None and kind.value.text != "none":
        name = teacher.value.text if teacher is not None and teacher.value else "regnety_160"
        draft.put("model.companions", [{"source": "timm", "name": name[:512]}], kind.source)


def _read_mae(call: Call, draft: Draft) -> None:
    # A script of another name is known by a flag that its pre-training alone has.
    script = call.invocation.name if call.invocation.name in _MAE else _PRETRAIN
    told_by = source_of_default(f"MAE {script}")
    flags = with_defaults(call.flags, _MAE[script], told_by=told_by)
    flag = flags.setting("model")
    name = put_zoo_model(draft, flag, zoo="timm")
    if name is not None and flag is not None and script != _PRETRAIN:
        draft.put("model.name", f"{name}_{_MAE_SIDE}", f"{flag.source}, timm's name for it")
        if not flags.has("cls_token"):
            draft.put("model.options", {"global_pool": "avg"}, told_by)
    _shared(call, draft, flags, told_by)
    draft.put("training.precision", "amp-fp16", told_by)
    put_plain(draft, source=told_by)
    draft.integer("training.gradientAccumulationSteps", flags.setting("accum_iter"))
    _clip(draft, flags)
    if script == _PROBE:
        draft.put("training.optimizer", {"name": "lars"}, told_by)
        draft.put("adapter", {"type": "linear_probe", "trainableModules": ["head"]}, told_by)
        return
    draft.put("training.optimizer", {"name": "adamw"}, told_by)
    put_float(draft, "training.optimizer.weightDecay", flags.setting("weight_decay"))
    put_float(draft, "training.labelSmoothing", flags.setting("smoothing"))


def _read_convnext(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("ConvNeXt main.py")
    put_zoo_model(draft, flags.setting("model"), zoo="timm")
    _shared(call, draft, flags, told_by)
    mixed = flags.setting("use_amp")
    if mixed is not None:
        draft.put("training.precision", "amp-fp16" if mixed.is_on else "fp32", mixed.source)
    put_plain(draft, source=told_by)
    draft.integer("training.gradientAccumulationSteps", flags.setting("update_freq"))
    _optimizer(draft, flags)
    put_float(draft, "training.labelSmoothing", flags.setting("smoothing"))
    average, on_cpu = flags.setting("model_ema"), flags.setting("model_ema_force_cpu")
    if average is not None and average.is_on and not (on_cpu is not None and on_cpu.is_on):
        draft.put("training.ema", True, average.source)
    _evaluation(draft, told_by)
    _clip(draft, flags)


def _shared(call: Call, draft: Draft, flags: Flags, told_by: str) -> None:
    put_batch(call, draft, flags.setting("batch_size"))
    put_picture(draft, flags.setting("input_size"))
    labels = flags.get("nb_classes")
    if labels is not None:
        draft.integer("model.numLabels", labels)
    draft.put("runtime.cudnnBenchmark", True, told_by)
    only = flags.get("eval")
    if only is not None and only.is_on:
        draft.put("phase", "infer", only.source)


def _evaluation(draft: Draft, told_by: str) -> None:
    """Set the evaluation: batches of one and a half times the size."""
    share = draft.get("input.batchSize")
    if isinstance(share, int):
        draft.put("training.evaluation.batchSize", max(1, int(1.5 * share)), told_by)


def _clip(draft: Draft, flags: Flags) -> None:
    flag: Flag | None = flags.get("clip_grad")
    if flag is not None and float_of(flag):
        draft.put("training.clipGradNorm", True, flag.source)


def _optimizer(draft: Draft, flags: Flags) -> None:
    """Set timm's optimizer: `sgd` is with Nesterov, `momentum` without."""
    flag = flags.setting("opt")
    name = draft.word("training.optimizer", flag)
    if flag is None or name is None:
        return
    name = name.lower()
    if name in ("sgd", "nesterov", "momentum"):
        put_sgd(draft, flags, source=flag.source, nesterov=name != "momentum")
        return
    draft.put("training.optimizer", {"name": name[:64]}, flag.source)
    put_float(draft, "training.optimizer.weightDecay", flags.setting("weight_decay"))


FAMILIES = (
    family_of("deit", _read_deit, is_on_cpu=is_off_gpu),
    family_of("mae", _read_mae, is_on_cpu=is_off_gpu),
    family_of("convnext", _read_convnext, is_on_cpu=is_off_gpu),
)
