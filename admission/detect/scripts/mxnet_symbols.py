"""MXNet's train_imagenet.py, train_cifar10.py and train_mnist.py, and what was made of them.

flags of `common/fit.py` -> model, batch of one GPU, replicas in the draft

Source: the recipes `mxnet_images`, `byteps_imagenet` and `nvidia_mxnet`.
MXNet's own scripts count the batch over all `--gpus` of a worker, which one process drives;
BytePS counts it per process, NVIDIA over the whole job.
Not modelled: gradient compression, the key-value store's own buffers.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint, integer_of
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.pictures import (
    is_unset,
    listed_devices,
    put_float,
    put_horovod,
    put_picture,
    put_plain,
    put_replicas,
    put_sgd,
    source_of,
    with_defaults,
)
from admission.detect.scripts.verbs import Scope, number_of, put_batch

_IMAGENET = {"network": "resnet", "num_layers": 50, "image_shape": "3,224,224"}
_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "train_imagenet.py": _IMAGENET,
    "train_cifar10.py": {"network": "resnet", "num_layers": 110, "image_shape": "3,28,28"},
    "train_mnist.py": {"network": "mlp", "batch_size": 64, "image_shape": "1, 28, 28"},
    "fine-tune.py": {"image_shape": "3,224,224", "mom": 0.0, "wd": 0.0},
}
"""Script -> what its `set_defaults` says."""
_WITH_LAYERS = {"resnet": "", "resnet-v1": "_v1", "resnetv1": "_v1", "resnext": "", "vgg": ""}
"""Networks that come in depths -> what follows the depth in the model's name."""
_VGG = 11
_ARCHITECTURES = {"resnetv1": "resnet{}_v1", "resnetv15": "resnet{}_v1b", "xception": "xception"}
"""NVIDIA's `--arch` -> the name of MXNet's zoo; v1.5 is `v1b` there."""
_NESTEROV = ("nag", "lbnag")
_HAVE_MOMENTUM = ("sgd", "dcasgd", "nag", "signum", "lbsgd")


def _read_mxnet(call: Call, draft: Draft) -> None:
    script = call.invocation.name
    told_by = source_of_default(script)
    flags = with_defaults(call.flags, _DEFAULTS.get(script, _IMAGENET), told_by=told_by)
    _symbol(call, draft, flags)
    _rest(draft, flags, told_by)
    cards = listed_devices(flags.get("gpus"))
    if cards is None:
        _open_cards(call, draft, flags.get("gpus"))
        return
    put_batch(call, draft, flags.setting("batch_size"), accumulation=cards)
    store = flags.setting("kv_store")
    is_shared = store is not None and store.value is not None and "dist" in store.value.text
    workers = _workers(call) if is_shared else 1
    put_replicas(draft, cards * workers, source=source_of(flags.get("gpus"), told_by))


def _read_byteps(call: Call, draft: Draft) -> None:
    told_by = source_of_default("train_imagenet_byteps.py")
    _symbol(call, draft, call.flags)
    _rest(draft, call.flags, told_by)
    put_batch(call, draft, call.flags.setting("batch_size"))


def _read_nvidia(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("NVIDIA RN50v1.5 train.py")
    _architecture(draft, flags)
    _rest(draft, flags, told_by)
    store = flags.setting("kv_store")
    if store is not None and store.value is not None and "horovod" in store.value.text:
        put_batch(call, draft, flags.setting("batch_size"), scope=Scope.WORLD)
        put_horovod(call, draft, source=store.source)
        return
    cards = listed_devices(flags.setting("gpus"))
    if cards is None:
        _open_cards(call, draft, flags.get("gpus"))
        return
    put_batch(call, draft, flags.setting("batch_size"), accumulation=cards)
    put_replicas(draft, cards, source=source_of(flags.get("gpus"), told_by))


def _symbol(call: Call, draft: Draft, flags: Flags) -> None:
    """Set the model by network and depth."""
    pretrained = flags.get("pretrained_model")
    if pretrained is not None:
        name = draft.word("model.name", pretrained)
        if name is not None:
            draft.put("model.source", "mxnet", pretrained.source)
            draft.put("model.name", name.rpartition("/")[2][:512], pretrained.source)
        return
    network, layers = flags.setting("network"), flags.setting("num_layers")
    name = draft.word("model.name", network)
    if network is None or name is None:
        return
    if name in _WITH_LAYERS:
        depth = number_of(layers) if layers is not None else _VGG if name == "vgg" else None
        if depth is None:
            _open_depth(call, draft, layers)
            return
        base = name.partition("-")[0].removesuffix("v1")
        name = f"{base}{depth}{_WITH_LAYERS[name]}"
    draft.put("model.source", "mxnet", network.source)
    draft.put("model.name", name, network.source)
    labels = flags.get("num_classes")
    if labels is not None:
        draft.integer("model.numLabels", labels)


def _architecture(draft: Draft, flags: Flags) -> None:
    flag, depth = flags.setting("arch"), number_of(flags.setting("num_layers"))
    text = draft.word("model.name", flag)
    if flag is None or text is None:
        return
    draft.put("model.source", "mxnet", flag.source)
    draft.put("model.name", _ARCHITECTURES.get(text, text).format(depth), flag.source)


def _rest(draft: Draft, flags: Flags, source: str) -> None:
    """Set what all of them share: picture, precision, optimizer, a Module bound as a whole."""
    draft.put("training.compile", True, source)
    put_picture(draft, flags.setting("image_shape"))
    put_plain(draft, source=source)
    put_mxnet_precision(draft, flags)
    flag = flags.setting("optimizer")
    name = draft.word("training.optimizer", flag)
    if flag is None or name is None:
        return
    name = name.lower()
    if name in ("sgd", *_NESTEROV):
        is_nesterov = name in _NESTEROV
        put_sgd(
            draft, flags, source=flag.source, nesterov=is_nesterov, momentum=("mom",), decay=("wd",)
        )
        return
    draft.put("training.optimizer", {"name": name[:64]}, flag.source)
    if name in _HAVE_MOMENTUM:
        put_float(draft, "training.optimizer.momentum", flags.setting("mom"))
    put_float(draft, "training.optimizer.weightDecay", flags.setting("wd"))


def put_mxnet_precision(draft: Draft, flags: Flags) -> None:
    """Set the precision: float16 casts the model, and the optimizer keeps an fp32 copy."""
    mixed, dtype = flags.get("amp"), flags.setting("dtype")
    text = draft.word("training.precision", dtype)
    if mixed is not None and mixed.is_on:
        draft.put("training.precision", "amp-fp16", mixed.source)
    elif dtype is not None and text is not None:
        is_half = text in ("float16", "fp16")
        draft.put("training.precision", "fp16" if is_half else "fp32", dtype.source)
        if is_half:
            draft.put("training.masterWeights", True, dtype.source)


def _workers(call: Call) -> int:
    """Return how many workers share a key-value store: what the operator or the script tells."""
    for word in call.invocation.variables.get("DMLC_NUM_WORKER", ()):
        number = integer_of(word.text) if word.is_known else None
        if number:
            return number
    return call.ranks.total


def _open_depth(call: Call, draft: Draft, flag: Flag | None) -> None:
    word = flag.value if flag is not None else None
    draft.gap(
        "model.name",
        code=word.code if word is not None and not word.is_known else ReasonCode.NO_MODEL,
        path=flag.field if flag is not None else call.origin,
        reason=f"--num-layers {word.text:.40} is no depth" if word else "no --num-layers is given",
        hint=annotation_hint("model.name"),
    )


def _open_cards(call: Call, draft: Draft, flag: Flag | None) -> None:
    word = flag.value if flag is not None else None
    draft.gap(
        "input.batchSize",
        "parallelism.strategy",
        code=word.code if word is not None and not word.is_known else ReasonCode.NO_BATCH,
        path=flag.field if flag is not None else call.origin,
        reason=f"--gpus {word.text if word else '':.40} lists no cards that are known; the batch "
        "is one of all of them",
        hint=annotation_hint("input.batchSize"),
    )


def _is_on_cpu(flags: Flags) -> bool:
    """Return whether no card is listed: the scripts then run on the CPU."""
    flag = flags.get("gpus")
    return flag is None or is_unset(flag) or flag.value is None


def _is_byteps_on_cpu(flags: Flags) -> bool:
    """Return whether `--cpu-train` is set: any word at all is true to the script."""
    flag = flags.get("cpu_train")
    return flag is not None and flag.value is not None and flag.value.text != ""


FAMILIES = (
    family_of("mxnet_images", _read_mxnet, is_on_cpu=_is_on_cpu),
    family_of("byteps_imagenet", _read_byteps, is_on_cpu=_is_byteps_on_cpu),
    family_of("nvidia_mxnet", _read_nvidia),
)
