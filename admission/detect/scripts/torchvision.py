"""torchvision's references/classification/train.py.

Source: pytorch/vision@bde124ee references/classification/train.py, `get_args_parser`.
The batch is one of a process. Mixed precision is fp16: apex's until v0.11, PyTorch's since.
Evaluation uses the same batch.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flags, Options, Takes
from admission.detect.invocation import Invocation
from admission.detect.scripts.family import Call, Family, Match, source_of_default
from admission.detect.scripts.images import (
    Zoo,
    is_on_cpu,
    note_call,
    put_batch,
    put_image_size,
    put_model,
    put_number,
    put_sgd,
)
from admission.detect.scripts.pictures import put_plain
from admission.detect.words import words

SCRIPT = "torchvision train.py"
ZOO = Zoo(source="torchvision", script=SCRIPT, model="resnet18", batch_size=32, weight_decay=1e-4)
_SIDE = 224

_VALUES = words(
    "data_path model device batch_size epochs workers opt lr momentum wd weight_decay "
    "norm_weight_decay bias_weight_decay transformer_embedding_decay label_smoothing "
    "mixup_alpha cutmix_alpha lr_scheduler lr_warmup_epochs lr_warmup_method lr_warmup_decay "
    "lr_step_size lr_gamma lr_min print_freq output_dir resume start_epoch auto_augment "
    "ra_magnitude augmix_severity random_erase world_size dist_url model_ema_steps "
    "model_ema_decay interpolation apex_opt_level val_resize_size val_crop_size train_crop_size "
    "clip_grad_norm ra_reps weights backend local_rank"
)
_SWITCHES = words(
    "cache_dataset sync_bn test_only pretrained amp apex model_ema use_deterministic_algorithms "
    "ra_sampler use_v2"
)
_OWN = words(
    "train_crop_size val_resize_size val_crop_size ra_sampler ra_reps lr_warmup_decay "
    "lr_step_size lr_warmup_method lr_gamma mixup_alpha cutmix_alpha cache_dataset "
    "norm_weight_decay transformer_embedding_decay model_ema_steps "
    "use_deterministic_algorithms data_path"
)
"""Flags that timm's train.py does not have."""
_PLACES = ("references/classification", "torchvision")
OPTIONS = Options(
    names={**dict.fromkeys(_VALUES, Takes.ONE), **dict.fromkeys(_SWITCHES, Takes.NOTHING)},
    short={"b": "batch_size", "j": "workers"},
)


def match(invocation: Invocation, flags: Flags) -> Match:
    """Return how sure it is: `train.py` in its folder, or with flags that only it has."""
    if invocation.is_module or invocation.name != "train.py":
        return Match.NO
    if any(place in invocation.location for place in _PLACES):
        return Match.PLACE
    is_own = not flags.foreign and flags.has("model") and flags.has(*_OWN)
    return Match.FLAGS if is_own and not flags.positional else Match.NO


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags, default = call.flags, source_of_default(SCRIPT)
    put_model(call, draft, ZOO, flags.get("model"))
    put_batch(draft, ZOO, flags.get("batch_size"))
    put_image_size(draft, flags.get("train_crop_size"), default=_SIDE, script=SCRIPT)
    amp = flags.get("amp", "apex")
    draft.put("training.precision", "amp-fp16" if amp else "fp32", amp.source if amp else default)
    put_plain(draft, source=default)
    _optimizer(call, draft)
    ema = flags.get("model_ema")
    if ema is not None:
        draft.put("training.ema", True, ema.source)
    clip = flags.get("clip_grad_norm")
    if clip is not None:
        draft.put("training.clipGradNorm", True, clip.source)
    put_number(draft, "training.labelSmoothing", flags.get("label_smoothing"), 0.0, ZOO)
    deterministic = flags.get("use_deterministic_algorithms")
    if deterministic is not None:
        draft.put("runtime.cudnnDeterministic", True, deterministic.source)
    else:
        draft.put("runtime.cudnnBenchmark", True, default)
    if flags.has("test_only"):
        _evaluation(call, draft)
    note_call(call, draft, match=match(call.invocation, flags), num_positional=0)


def _evaluation(call: Call, draft: Draft) -> None:
    """Set what `--test-only` does: one pass over images of another side, without autocast."""
    flag = call.flags.get("test_only")
    source = flag.source if flag is not None else ""
    if call.ranks.total > 1:
        draft.gap(
            "phase",
            code=ReasonCode.UNSUPPORTED,
            path=call.origin,
            reason="--test-only on several GPUs evaluates under DDP, which is not read yet",
            hint=annotation_hint("phase"),
        )
        return
    draft.put("phase", "infer", source)
    draft.put("training.precision", "fp32", source)
    size = call.flags.get("val_crop_size")
    put_image_size(draft, size, default=_SIDE, script=SCRIPT)
    draft.put("runtime", {"cudnnDeterministic": True}, source)


def _optimizer(call: Call, draft: Draft) -> None:
    flag = call.flags.get("opt")
    source = flag.source if flag is not None else source_of_default(SCRIPT)
    name = draft.word("training.optimizer", flag) if flag is not None else "sgd"
    if name is None:
        return
    name = name.lower()
    if name.startswith("sgd"):
        put_sgd(draft, call, ZOO, nesterov="nesterov" in name, source=source)
    elif name in ("rmsprop", "adamw"):
        draft.put("training.optimizer", {"name": name}, source)
        decay = call.flags.get("weight_decay", "wd")
        put_number(draft, "training.optimizer.weightDecay", decay, ZOO.weight_decay, ZOO)
        if name == "rmsprop":
            momentum = call.flags.get("momentum")
            put_number(draft, "training.optimizer.momentum", momentum, ZOO.momentum, ZOO)
    else:
        draft.put("training.optimizer", {"name": name}, source)


FAMILY = Family(
    name=SCRIPT,
    flags=lambda invocation: invocation.flags(OPTIONS),
    match=match,
    read=read,
    is_on_cpu=is_on_cpu,
    may_claim=lambda invocation: invocation.name == "train.py",
)
