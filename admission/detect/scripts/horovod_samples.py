"""The samples of Horovod and BytePS, and a ResNet-50 sample made of them.

flags -> model, batch of one process, replicas in the draft

Source: the recipes `horovod_pytorch`, `horovod_tensorflow`, `resnet50_sample` and those of MNIST.
Every process has one GPU; the batch is one of a process. Pictures are 224 wide, compute is fp32.
Not modelled: buffers for fp16 gradients on the wire, Adasum's extra copies.
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
    note_likeness,
    put_horovod,
    put_picture,
    put_plain,
    put_replicas,
    put_sgd,
    unsupported_model,
)
from admission.detect.scripts.verbs import put_batch, put_zoo_model

_SIDE = 224
_RESNET = "resnet50"
_SAMPLE = "resnet50_sample"
_SAMPLE_FLAGS = ("model_dir", "val_crop_size", "train_crop_size", "use_mixed_precision")
"""Flags of the sample's parser of which one should be there, where the folder tells nothing."""


def _read_torch(call: Call, draft: Draft) -> None:
    flags, script = call.flags, call.invocation.name
    told_by = source_of_default(script)
    is_benchmark = "benchmark" in script
    if is_benchmark:
        put_zoo_model(draft, flags.setting("model"), zoo="torchvision")
        draft.put("training.optimizer", {"name": "sgd"}, told_by)
    else:
        _resnet(draft, "torchvision", told_by)
        put_sgd(draft, flags, source=told_by, decay=("wd",))
    draft.put("input.imageSize", [3, _SIDE, _SIDE], told_by)
    draft.put("training.precision", "fp32", told_by)
    put_batch(call, draft, flags.setting("batch_size"))
    put_plain(draft, source=told_by)
    passes = flags.get("batches_per_allreduce", "batches_per_pushpull")
    if passes is not None:
        draft.integer("training.gradientAccumulationSteps", passes)
    if not is_benchmark:
        draft.integer("training.evaluation.batchSize", flags.setting("val_batch_size"))
    draft.put("runtime.cudnnBenchmark", True, told_by)
    _exchange(call, draft, told_by)


def _read_tensorflow(call: Call, draft: Draft) -> None:
    flags, script = call.flags, call.invocation.name
    told_by = source_of_default(script)
    if "benchmark" in script:
        flag = flags.setting("model")
        name = put_zoo_model(draft, flag, zoo="keras")
        if name is not None and flag is not None:
            draft.put("model.name", name.lower(), flag.source)
        draft.put("training.optimizer", {"name": "sgd"}, told_by)
    else:
        _resnet(draft, "keras", told_by)
        put_sgd(draft, flags, source=told_by, decay=("wd",))
        draft.integer("training.evaluation.batchSize", flags.setting("val_batch_size"))
    draft.put("input.imageSize", [3, _SIDE, _SIDE], told_by)
    draft.put("training.precision", "fp32", told_by)
    put_batch(call, draft, flags.setting("batch_size"))
    put_plain(draft, source=told_by)
    draft.put("runtime.allowGrowth", True, told_by)
    _exchange(call, draft, told_by)


def _read_sample(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("resnet50.py sample")
    _resnet(draft, "torchvision", told_by)
    put_picture(draft, flags.setting("train_crop_size"))
    put_batch(call, draft, flags.setting("batch_size"))
    put_sgd(draft, flags, source=told_by)
    put_plain(draft, source=told_by)
    mixed = flags.get("use_mixed_precision")
    draft.put(
        "training.precision",
        "amp-fp16" if mixed else "fp32",
        mixed.source if mixed else told_by,
    )
    if not flags.has("backend"):
        put_horovod(call, draft, source=told_by)
    note_likeness(call, draft, _SAMPLE)


def _read_small(call: Call, draft: Draft) -> None:
    """Say what there is to say of a network that no zoo has."""
    put_batch(call, draft, call.flags.get("batch_size"))
    unsupported_model(
        draft,
        call.origin,
        f"{call.invocation.name} trains a small network of its own, not read",
        *(() if call.flags.has("batch_size") else ("input.batchSize",)),
    )


def _resnet(draft: Draft, zoo: str, told_by: str) -> None:
    draft.put("model.source", zoo, told_by)
    draft.put("model.name", _RESNET, told_by)


def _exchange(call: Call, draft: Draft, told_by: str) -> None:
    if "byteps" in call.invocation.location or "pushpull" in " ".join(call.invocation.spellings):
        put_replicas(draft, call.ranks.total, source=told_by)
    else:
        put_horovod(call, draft, source=told_by)


def _match_sample(invocation: Invocation, flags: Flags) -> Match:
    """Return how sure it is: other scripts are called resnet50.py too, with other flags."""
    recipe = load_recipe(_SAMPLE)
    if match_of(invocation, recipe) is Match.PLACE:
        return Match.PLACE
    is_own = invocation.name in recipe.scripts and flags.has(*_SAMPLE_FLAGS)
    return Match.FLAGS if is_own and flags.has("data_dir") and not flags.foreign else Match.NO


def _may_be_sample(invocation: Invocation) -> bool:
    recipe = load_recipe(_SAMPLE)
    return not invocation.is_module and invocation.name in recipe.scripts | recipe.unique


FAMILIES = (
    family_of("horovod_pytorch", _read_torch, is_on_cpu=is_off_gpu),
    family_of("horovod_tensorflow", _read_tensorflow, is_on_cpu=is_off_gpu),
    replace(
        family_of(_SAMPLE, _read_sample, is_on_cpu=is_off_gpu, is_closed=False),
        match=_match_sample,
        may_claim=_may_be_sample,
    ),
    family_of("horovod_pytorch_mnist", _read_small, is_on_cpu=is_off_gpu, is_closed=False),
    family_of("horovod_tensorflow_mnist", _read_small, is_closed=False),
)
