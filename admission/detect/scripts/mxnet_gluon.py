"""GluonCV's image classification, and Horovod's sample of it.

flags -> model, batch of one GPU, replicas in the draft

Source: the recipes `gluoncv_images` and `mxnet_horovod`. The batch is one of a device.
GluonCV trains with Nesterov's SGD, Horovod's sample with plain SGD.
Not modelled: a teacher on the card beyond its name, mixup, deformable models.
"""

from __future__ import annotations

from admission.detect.draft import Draft
from admission.detect.flags import Flags
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.mxnet_symbols import put_mxnet_precision
from admission.detect.scripts.pictures import (
    is_off_gpu,
    put_horovod,
    put_picture,
    put_plain,
    put_replicas,
    put_sgd,
    source_of,
    unsupported_model,
)
from admission.detect.scripts.verbs import number_of, put_batch, put_zoo_model

_SIDE_CIFAR = 32
_PLAIN_SGD = "mxnet_imagenet_resnet50.py"
_EVERY_CARD = "dali-gpu"
"""A data backend with which no `--num-gpus` means every card."""


def _read_gluon(call: Call, draft: Draft) -> None:
    flags, script = call.flags, call.invocation.name
    told_by = source_of_default(script)
    _model(call, draft)
    put_batch(call, draft, flags.setting("batch_size"))
    if "cifar" in script:
        draft.put("input.imageSize", [3, _SIDE_CIFAR, _SIDE_CIFAR], told_by)
    else:
        put_picture(draft, flags.setting("input_size"))
    _training(draft, flags, told_by, nesterov=True)
    cards = number_of(flags.setting("num_gpus")) or call.gpus
    if not call.ranks.is_distributed:
        put_replicas(draft, cards, source=source_of(flags.get("num_gpus"), told_by))


def _read_horovod(call: Call, draft: Draft) -> None:
    flags, script = call.flags, call.invocation.name
    told_by = source_of_default(script)
    _model(call, draft)
    put_batch(call, draft, flags.setting("batch_size"))
    put_picture(draft, flags.setting("input_size"))
    _training(draft, flags, told_by, nesterov=script != _PLAIN_SGD)
    put_horovod(call, draft, source=told_by)


def _model(call: Call, draft: Draft) -> None:
    flags = call.flags
    flag = flags.setting("model")
    if flag is None:
        unsupported_model(draft, call.origin, f"{call.invocation.name} needs --model")
        return
    name = put_zoo_model(draft, flag, zoo="mxnet")
    if name is not None:
        draft.put("model.name", name.lower(), flag.source)
    teacher = flags.get("teacher")
    if teacher is not None and teacher.value is not None and teacher.value.text:
        companion = {"source": "mxnet", "name": teacher.value.text.lower()[:512]}
        draft.put("model.companions", [companion], teacher.source)


def _training(draft: Draft, flags: Flags, told_by: str, *, nesterov: bool) -> None:
    put_plain(draft, source=told_by)
    put_mxnet_precision(draft, flags)
    put_sgd(draft, flags, source=told_by, nesterov=nesterov, decay=("wd",))
    if flags.is_on("label_smoothing"):
        flag = flags.get("label_smoothing")
        draft.put("training.labelSmoothing", 0.1, source_of(flag, told_by))


def _is_on_cpu(flags: Flags) -> bool:
    """Return whether `--num-gpus` is none, and no data backend counts the cards instead."""
    backend = flags.get("data_backend")
    word = backend.value if backend is not None else None
    counts = word is not None and word.text == _EVERY_CARD
    return number_of(flags.setting("num_gpus")) == 0 and not counts


FAMILIES = (
    family_of("gluoncv_images", _read_gluon, is_on_cpu=_is_on_cpu),
    family_of("mxnet_horovod", _read_horovod, is_on_cpu=is_off_gpu),
)
