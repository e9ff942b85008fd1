"""pytorch/examples imagenet/main.py, and torchelastic's variant of it.

Source: pytorch/examples@77f55b91 imagenet/main.py; pytorch/elastic examples/imagenet/main.py.
The batch is one of a whole node (split over its GPUs); torchelastic's is one of a process.
Under a launcher only torchelastic's shares the work: the other asks for `--dist-url env://`.
Images are 224 by 224, fp32, SGD; there is no flag for another size, precision or optimizer.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags, Options, Takes
from admission.detect.invocation import Invocation
from admission.detect.scripts.family import Call, Family, Match, source_of_default
from admission.detect.scripts.images import (
    Zoo,
    note_call,
    put_batch,
    put_image_size,
    put_model,
    put_sgd,
)
from admission.detect.scripts.pictures import put_plain

SCRIPT = "imagenet main.py"
ZOO = Zoo(source="torchvision", script=SCRIPT, model="resnet18", batch_size=256, weight_decay=1e-4)
_SIDE = 224
_SCRIPTS = ("main.py", "imagenet.py")

_STOCK = {
    "arch": Takes.ONE,
    "workers": Takes.ONE,
    "epochs": Takes.ONE,
    "start_epoch": Takes.ONE,
    "batch_size": Takes.ONE,
    "lr": Takes.ONE,
    "learning_rate": Takes.ONE,
    "momentum": Takes.ONE,
    "weight_decay": Takes.ONE,
    "wd": Takes.ONE,
    "print_freq": Takes.ONE,
    "resume": Takes.ONE,
    "evaluate": Takes.NOTHING,
    "pretrained": Takes.NOTHING,
    "world_size": Takes.ONE,
    "rank": Takes.ONE,
    "dist_url": Takes.ONE,
    "dist_backend": Takes.ONE,
    "seed": Takes.ONE,
    "gpu": Takes.ONE,
    "multiprocessing_distributed": Takes.NOTHING,
    "dummy": Takes.NOTHING,
    "no_accel": Takes.NOTHING,
}
_ELASTIC = {"checkpoint_file": Takes.ONE}
_NOT_ELASTIC = (
    "learning_rate",
    "resume",
    "evaluate",
    "pretrained",
    "world_size",
    "rank",
    "dist_url",
    "seed",
    "gpu",
    "dummy",
    "no_accel",
)
"""Flags that torchelastic's variant does not have."""
OPTIONS = Options(
    names={**_STOCK, **_ELASTIC},
    short={
        "a": "arch",
        "j": "workers",
        "b": "batch_size",
        "p": "print_freq",
        "e": "evaluate",
    },
)


def match(invocation: Invocation, flags: Flags) -> Match:
    """Return how sure it is: `main.py` or `imagenet.py` with this parser's flags."""
    name = invocation.name
    if invocation.is_module or name not in _SCRIPTS or flags.foreign:
        return Match.NO
    if "imagenet" in invocation.location:
        return Match.PLACE
    return Match.FLAGS if flags.has("arch") else Match.NO


def read(call: Call, draft: Draft) -> None:
    """Fill the draft. The batch of a node is divided over the GPUs that share it."""
    flags = call.flags
    put_model(call, draft, ZOO, flags.get("arch"))
    put_batch(draft, ZOO, flags.get("batch_size"))
    put_image_size(draft, None, default=_SIDE, script=SCRIPT)
    default = source_of_default(SCRIPT)
    draft.put("training.precision", "fp32", default)
    put_plain(draft, source=default)
    put_sgd(draft, call, ZOO, nesterov=False, source=default)
    seed = flags.get("seed")
    if seed is not None:
        draft.put("runtime.cudnnDeterministic", True, seed.source)
    _share(call, draft)
    evaluate = flags.get("evaluate")
    if evaluate is not None:
        _evaluation(call, draft, evaluate)
    note_call(call, draft, match=Match.PLACE, num_positional=1)


def _evaluation(call: Call, draft: Draft, flag: Flag) -> None:
    """Set what `--evaluate` does: forward passes of the same batch and side."""
    if call.gpus == 1 and call.ranks.total == 1:
        draft.put("phase", "infer", flag.source)
        return
    draft.gap(
        "phase",
        code=ReasonCode.UNSUPPORTED,
        path=flag.field,
        reason=f"{flag.spelling} on several GPUs evaluates a wrapped model, which is not read yet",
        hint=annotation_hint("phase"),
    )


def _share(call: Call, draft: Draft) -> None:
    """Divide the batch as the script does and set the strategy it then uses."""
    flags, batch = call.flags, draft.get("input.batchSize")
    source = draft.sources.get("input.batchSize", "")
    spawns = flags.is_on("multiprocessing_distributed")
    if _is_elastic(call) or (flags.has("gpu") and not spawns) or call.gpus == 1:
        return
    if call.ranks.is_distributed and not spawns:
        if call.ranks.per_pod > 1 and not flags.has(*_NOT_ELASTIC):
            draft.doubt(
                f"{call.origin}: main.py under a launcher is read as torchelastic's, whose batch "
                "is of one process; the folder does not tell",
                "input.batchSize",
            )
        elif call.ranks.per_pod > 1:
            draft.gap(
                "input.batchSize",
                code=ReasonCode.NO_BATCH,
                path=call.origin,
                reason=(
                    "main.py under a launcher: whether --batch-size is of one process or of the "
                    "node depends on the version of the script"
                ),
                hint=annotation_hint("input.batchSize"),
            )
        return
    if batch is not None and spawns:
        draft.put("input.batchSize", max(1, batch // call.gpus), f"{source}, divided by GPUs")
    elif batch is not None:
        draft.put("input.batchSize", -(-batch // call.gpus), f"{source}, divided by GPUs")
    if spawns:
        nodes = flags.get("world_size")
        number = nodes.value.text if nodes is not None and nodes.value is not None else "1"
        total = call.gpus * (int(number) if number.isdigit() and int(number) < 4096 else 1)
        where = f"{call.invocation.where}.args --multiprocessing-distributed"
        draft.put("parallelism.strategy", "ddp", where)
        draft.put("parallelism.dataParallel", total, where)
    else:
        draft.put("parallelism.strategy", "dp", f"{SCRIPT}, one process on all GPUs")
        draft.put("parallelism.dataParallel", call.gpus, f"{SCRIPT}, one process on all GPUs")


def _is_elastic(call: Call) -> bool:
    """Return whether it is torchelastic's: by a flag, its folder or URL, or its image."""
    image = call.invocation.image.rpartition("@")[0] or call.invocation.image
    return (
        call.flags.has("checkpoint_file")
        or "elastic" in call.invocation.location
        or "torchelastic" in image
    )


FAMILY = Family(
    name=SCRIPT,
    flags=lambda invocation: invocation.flags(OPTIONS),
    match=match,
    read=read,
    is_on_cpu=lambda flags: flags.has("no_accel"),
    may_claim=lambda invocation: invocation.name in _SCRIPTS,
)
