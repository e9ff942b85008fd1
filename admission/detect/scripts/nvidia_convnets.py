"""The image classifiers of NVIDIA's DeepLearningExamples, for PyTorch and TensorFlow.

flags, named configurations -> model, batch of one process in the draft

Source: the recipes `nvidia_convnets` and `nvidia_tf_convnets`. `launch.py` takes a row of
configs.yml by model, platform and precision, and flags over it.
Not modelled: DALI's own memory on the GPU, CUDA graphs of the newest releases.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.recipes.tables import load_table
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.pictures import (
    put_float,
    put_horovod,
    put_picture,
    put_plain,
    put_replicas,
    put_sgd,
    source_of,
    unsupported_model,
    with_defaults,
)
from admission.detect.scripts.verbs import number_of, put_batch

_OWN = "NVIDIA ConvNets"
_TABLE = "nvidia_convnets_configs"
_ZOO: Mapping[str, tuple[str, str]] = {
    "resnet50": ("torchvision", "resnet50"),
    "resnext101-32x4d": ("timm", "resnext101_32x4d"),
    "se-resnext101-32x4d": ("timm", "seresnext101_32x4d"),
    "efficientnet-b0": ("torchvision", "efficientnet_b0"),
    "efficientnet-b4": ("torchvision", "efficientnet_b4"),
}
"""`--arch` -> the same architecture in a zoo: NVIDIA's ResNet is v1.5, as torchvision's."""
_SIDES = {"efficientnet-b4": 380}
_SIDE = 224
_TF_MODES = ("train", "train_and_evaluate", "training_benchmark")


def _read_torch(call: Call, draft: Draft) -> None:
    told_by = source_of_default(_OWN)
    flags = _named(call, draft)
    _model(draft, flags)
    processes = _processes(call, draft, flags)
    put_batch(call, draft, flags.setting("batch_size"))
    size = flags.setting("image_size")
    if size is not None:
        put_picture(draft, size)
    else:
        arch = flags.setting("arch")
        side = _SIDES.get(arch.value.text if arch is not None and arch.value else "", _SIDE)
        draft.put("input.imageSize", [3, side, side], told_by)
    put_plain(draft, source=told_by)
    _accumulation(draft, flags, processes)
    mixed = flags.setting("amp")
    is_mixed = mixed is not None and mixed.is_on
    precision = "amp-fp16" if is_mixed else "fp32"
    draft.put("training.precision", precision, source_of(mixed, told_by))
    half = flags.get("fp16")
    if half is not None:
        draft.put("training.precision", "fp16", half.source)
        draft.put("training.masterWeights", True, half.source)
    _optimizer(draft, flags)
    put_float(draft, "training.labelSmoothing", flags.setting("label_smoothing"))
    layout = flags.setting("memory_format")
    if layout is not None and layout.value is not None and layout.value.text == "nhwc":
        draft.put("runtime.memoryFormat", "channels_last", layout.source)
    average = flags.get("use_ema")
    if average is not None:
        draft.put("training.ema", True, average.source)
    draft.put("runtime.cudnnBenchmark", True, told_by)
    if flags.is_on("evaluate"):
        draft.put("phase", "infer", source_of(flags.get("evaluate"), told_by))


def _named(call: Call, draft: Draft) -> Flags:
    """Return the flags over the row of configs.yml that they name."""
    flags = call.flags
    names = [flags.get(name) for name in ("model", "platform", "precision")]
    known = [f.value.text for f in names if f is not None and f.value and f.value.is_known]
    if not any(names):
        return flags
    key = " ".join(known)
    row = load_table(_TABLE).get(key) if len(known) == len(names) else None
    if isinstance(row, Mapping) and not flags.has("cfg_file"):
        told_by = f"configs.yml of {_OWN} ({key:.60})"
        return with_defaults(flags, row, told_by=told_by)
    draft.gap(
        "model.name",
        "input.batchSize",
        code=ReasonCode.NO_MODEL,
        path=call.origin,
        reason=f"configs.yml has no row '{key:.80}' that is known",
        hint=annotation_hint("input.batchSize"),
    )
    return flags


def _model(draft: Draft, flags: Flags) -> None:
    flag = flags.setting("arch")
    text = draft.word("model.name", flag)
    if flag is None or text is None:
        return
    if text not in _ZOO:
        unsupported_model(
            draft, flag.field, f"{flag.spelling} {text:.60} is in no zoo that is known"
        )
        return
    zoo, name = _ZOO[text]
    draft.put("model.source", zoo, flag.source)
    draft.put("model.name", name, flag.source)


def _processes(call: Call, draft: Draft, flags: Flags) -> int:
    """Return how many processes share the job; multiproc.py is a launcher of its own."""
    flag = flags.get("nproc_per_node")
    if flag is None:
        return call.ranks.total
    number = number_of(flag)
    if number is None:
        draft.integer("parallelism.dataParallel", flag)
        return 1
    total = number * (number_of(flags.get("nnodes")) or 1)
    put_replicas(draft, total, source=flag.source)
    return total


def _accumulation(draft: Draft, flags: Flags, processes: int) -> None:
    """Set the batches before a step: those that make up `--optimizer-batch-size`."""
    flag, batch = flags.setting("optimizer_batch_size"), draft.get("input.batchSize")
    whole = number_of(flag)
    if flag is not None and whole and isinstance(batch, int):
        steps = max(1, whole // (batch * processes))
        draft.put("training.gradientAccumulationSteps", steps, flag.source)


def _optimizer(draft: Draft, flags: Flags) -> None:
    flag = flags.setting("optimizer")
    name = draft.word("training.optimizer", flag)
    if flag is None or name is None:
        return
    if name == "sgd":
        put_sgd(draft, flags, source=flag.source, nesterov=flags.is_on("nesterov"))
        return
    draft.put("training.optimizer", {"name": name[:64]}, flag.source)
    put_float(draft, "training.optimizer.momentum", flags.setting("momentum"))
    put_float(draft, "training.optimizer.weightDecay", flags.setting("weight_decay", "wd"))


def _read_tensorflow(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("NVIDIA TensorFlow ConvNets")
    arch: Flag | None = flags.setting("arch")
    name = draft.word("model.name", arch)
    if arch is not None and name is not None:
        draft.put("model.source", "keras", arch.source)
        draft.put("model.name", name, arch.source)
    put_batch(call, draft, flags.setting("batch_size"))
    side = None if flags.has("data_dir") else flags.get("synthetic_data_size")
    if side is not None:
        put_picture(draft, side)
    else:
        draft.put("input.imageSize", [3, _SIDE, _SIDE], told_by)
    mixed = flags.get("amp", "use_tf_amp")
    precision = "amp-fp16" if mixed is not None else "fp32"
    draft.put("training.precision", precision, source_of(mixed, told_by))
    put_plain(draft, source=told_by)
    put_sgd(draft, flags, source=told_by)
    put_float(draft, "training.labelSmoothing", flags.get("label_smoothing"))
    put_horovod(call, draft, source=told_by)
    compiled = flags.get("xla", "use_xla")
    if compiled is not None:
        draft.put("training.compile", True, compiled.source)
    mode = flags.setting("mode")
    if mode is not None and mode.value is not None and mode.value.text not in _TF_MODES:
        draft.put("phase", "infer", mode.source)


FAMILIES = (
    family_of("nvidia_convnets", _read_torch),
    family_of("nvidia_tf_convnets", _read_tensorflow, is_on_cpu=lambda flags: flags.has("cpu")),
)
