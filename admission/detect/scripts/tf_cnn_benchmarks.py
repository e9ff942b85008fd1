"""TensorFlow's tf_cnn_benchmarks.

flags -> model, batch of one GPU, towers in the draft

Source: the recipe `tf_cnn_benchmarks`. The batch is one of a GPU; 0 is the model's own.
Not modelled: staged variables, gradient repacking, `--batch_group_size`.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint, integer_of
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.pictures import (
    is_off_gpu,
    put_float,
    put_horovod,
    put_plain,
    put_replicas,
    put_sgd,
)
from admission.detect.scripts.verbs import number_of, put_batch, put_zoo_model

_NAME = "tf_cnn_benchmarks"
_CIFAR = "cifar10"
_OTHER_SIDES = {
    "alexnet": 227,
    "overfeat": 231,
    "inception3": 299,
    "inception4": 299,
    "nasnetlarge": 331,
    "ssd300": 300,
    "lenet": 28,
}
"""Models on ImageNet whose pictures are not 224 wide."""
_SIDE = 224
_SIDE_CIFAR = 32
_BATCHES = {
    "vgg11": 64,
    "vgg16": 64,
    "vgg19": 64,
    "alexnet": 512,
    "resnet50": 64,
    "resnet50_v1.5": 64,
    "resnet50_v2": 64,
    "official_resnet50": 128,
    "official_resnet50_v2": 128,
}
"""Models whose own batch is not the usual one."""
_BATCH = 32
_BATCHES_CIFAR = {"densenet40_k12": 64, "densenet100_k12": 64, "densenet100_k24": 64}
_BATCH_CIFAR = 128
_NOT_PICTURES = ("ncf", "deepspeech2", "trivial")
"""Models with no picture size or batch worth a default here."""
_VOLCANO = "VC_WORKER_NUM"
"""What Volcano sets for its tasks called `worker`, beside the files of their hosts."""
_SHARED_SERVERS = ("parameter_server", "distributed_replicated")


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags, source = call.flags, source_of_default(_NAME)
    model = put_zoo_model(draft, flags.setting("model"), zoo="keras")
    is_small = _is_small(flags)
    _batch(call, draft, model, is_small=is_small)
    if model is not None and model not in _NOT_PICTURES:
        side = _SIDE_CIFAR if is_small else _OTHER_SIDES.get(model, _SIDE)
        draft.put("input.imageSize", [3, side, side], f"{source} --model {model:.60}")
    _precision(flags, draft, source)
    put_plain(draft, source=source)
    _optimizer(flags, draft)
    _replicas(call, draft)
    _runtime(flags, draft)


def _is_small(flags: Flags) -> bool:
    """Return whether the pictures are CIFAR-10's: by name, or by the folder as the script does."""
    for flag in (flags.get("data_name"), flags.get("data_dir")):
        if flag is not None and flag.value is not None and flag.value.text:
            return _CIFAR in flag.value.text
    return False


def _batch(call: Call, draft: Draft, model: str | None, *, is_small: bool) -> None:
    flag = call.flags.get("batch_size")
    if flag is not None and number_of(flag) != 0:
        put_batch(call, draft, flag)
        return
    if model is None or model in _NOT_PICTURES:
        draft.gap(
            "input.batchSize",
            code=ReasonCode.NO_BATCH,
            path=flag.field if flag is not None else call.origin,
            reason="no --batch_size is given, and that of the model is not known",
            hint=annotation_hint("input.batchSize"),
        )
        return
    table, usual = (_BATCHES_CIFAR, _BATCH_CIFAR) if is_small else (_BATCHES, _BATCH)
    source = f"{source_of_default(_NAME)} --model {model:.60}"
    draft.put("input.batchSize", table.get(model, usual), source)


def _precision(flags: Flags, draft: Draft, source: str) -> None:
    """Set fp16 compute over fp32 variables, or fp16 variables too."""
    half, stored = flags.get("use_fp16"), flags.get("fp16_vars")
    if half is None or not flags.is_on("use_fp16"):
        draft.put("training.precision", "fp32", source)
    elif stored is not None and flags.is_on("fp16_vars"):
        draft.put("training.precision", "fp16", stored.source)
    else:
        draft.put("training.precision", "amp-fp16", half.source)


def _optimizer(flags: Flags, draft: Draft) -> None:
    flag = flags.setting("optimizer")
    name = draft.word("training.optimizer", flag)
    if flag is None or name is None:
        return
    if name == "momentum":
        put_sgd(draft, flags, source=flag.source, nesterov=True)
        return
    draft.put("training.optimizer", {"name": name[:64]}, flag.source)
    if name == "rmsprop":
        put_float(draft, "training.optimizer.momentum", flags.setting("rmsprop_momentum"))
    put_float(draft, "training.optimizer.weightDecay", flags.setting("weight_decay"))


def _replicas(call: Call, draft: Draft) -> None:
    """Set how many GPUs have a copy of the model: towers of a process times its workers."""
    flags = call.flags
    flag = flags.setting("variable_update")
    way = draft.word("parallelism.strategy", flag)
    towers = flags.setting("num_gpus")
    number = number_of(towers)
    if flag is None or way is None or towers is None:
        return
    if way == "horovod":
        put_horovod(call, draft, source=flag.source)
        return
    if number is None:
        draft.integer("parallelism.dataParallel", towers)
        return
    workers = _workers(call, flags.get("worker_hosts"))
    replicas = number * (workers or call.ranks.total)
    put_replicas(draft, replicas, source=towers.source)
    if workers is None and call.ranks.total == 1 and flags.has("worker_hosts"):
        draft.put("parallelism.strategy", "ddp", flag.source)
        draft.put("parallelism.dataParallel", replicas, towers.source)
        draft.doubt(
            f"{call.origin}: --worker_hosts is not resolved; on how many machines it runs is open",
            "parallelism.dataParallel",
        )
    if way in _SHARED_SERVERS and number > 1:
        draft.warnings.append(
            f"{flag.field}: variables lie on one GPU or are spread by {way}; "
            "read as a whole copy on each"
        )


def _workers(call: Call, flag: Flag | None) -> int | None:
    """Return how many workers there are: the hosts listed, or what the operator sets."""
    if flag is None or flag.value is None:
        return None
    if flag.value.is_known:
        return len([host for host in flag.value.text.split(",") if host.strip()]) or None
    for word in call.invocation.variables.get(_VOLCANO, ()):
        return integer_of(word.text) if word.is_known else None
    return None


def _runtime(flags: Flags, draft: Draft) -> None:
    layout = flags.setting("data_format")
    if layout is not None and layout.value is not None and layout.value.text == "NHWC":
        draft.put("runtime.memoryFormat", "channels_last", layout.source)
    growth = flags.get("allow_growth")
    if growth is not None and growth.is_on:
        draft.put("runtime.allowGrowth", True, growth.source)
    compiled = flags.get("xla", "xla_compile")
    if compiled is not None and compiled.is_on:
        draft.put("training.compile", True, compiled.source)
    idle = flags.get("forward_only", "eval")
    if idle is not None and idle.is_on:
        draft.put("phase", "infer", idle.source)


FAMILY = family_of(_NAME, read, is_on_cpu=is_off_gpu)
