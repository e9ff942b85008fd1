"""What programs that train on pictures and have a recipe do with their flags.

    flags over the recipe's defaults -> image size, optimizer, replicas in the draft

Scripts whose parser is written out in Python (torchvision's, timm's) use `images` instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.configs import defaults_of
from admission.detect.draft import Draft, annotation_hint, integer_of
from admission.detect.flags import Flag, Flags
from admission.detect.recipes import load_recipe
from admission.detect.scripts.by_recipe import match_of
from admission.detect.scripts.family import Call, Match
from admission.detect.scripts.verbs import put_parallel

MAX_SIDE = 1 << 14
_MAX_NUMBER = 1e6
_SEPARATORS = re.compile(r"[\s,()\[\]xX]+")
_DEVICES = re.compile(r"(cuda:)?\d+(,(cuda:)?\d+)*,?")


def put_plain(draft: Draft, *, source: str) -> None:
    """Set what a plain loop has: every activation is kept, and every batch is a step."""
    draft.put("training.gradientCheckpointing", "none", source)
    draft.put("training.gradientAccumulationSteps", 1, source)


def put_picture(draft: Draft, flag: Flag | None, *, channels: int = 3) -> None:
    """Set C, H, W by *flag*: one side, two, or all three numbers, in words or joined by commas."""
    if flag is None:
        return
    texts = [text for word in flag.values for text in _SEPARATORS.split(word.text) if text]
    numbers = [integer_of(text) for text in texts]
    known = [number for number in numbers if number is not None and 0 < number <= MAX_SIDE]
    is_known = all(word.is_known for word in flag.values)
    if is_known and len(known) == len(numbers) and len(known) in (1, 2, 3):
        size = known if len(known) == 3 else [channels, *(known * 2)[:2]]
        draft.put("input.imageSize", size, flag.source)
        return
    draft.gap(
        "input.imageSize",
        code=next((word.code for word in flag.values if not word.is_known), _INVALID),
        path=flag.field,
        reason=f"{flag.spelling} {' '.join(texts):.60} is no image size",
        hint=annotation_hint("input.imageSize"),
    )


_INVALID = str(ReasonCode.INVALID_SPEC)


def put_float(draft: Draft, path: str, flag: Flag | None) -> bool:
    """Set the number of *flag* if it is one that a spec can hold; return whether it is."""
    number = float_of(flag)
    if flag is None or number is None or not 0.0 <= number <= _MAX_NUMBER:
        return False
    draft.put(path, number, flag.source)
    return True


def float_of(flag: Flag | None) -> float | None:
    """Return the number of *flag*, or None if it has none that is known."""
    if flag is None or flag.value is None or not flag.value.is_known:
        return None
    try:
        number = float(flag.value.text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def put_sgd(
    draft: Draft,
    flags: Flags,
    *,
    source: str,
    nesterov: bool = False,
    momentum: Iterable[str] = ("momentum",),
    decay: Iterable[str] = ("weight_decay", "wd"),
) -> None:
    """Set SGD with the momentum and weight decay of the flags of these names.

    A momentum that is not resolved is the default's: what it weighs is whether there is one.
    """
    draft.put("training.optimizer", {"name": "sgd"}, source)
    path = "training.optimizer.momentum"
    if not put_float(draft, path, flags.setting(*momentum)):
        put_float(draft, path, next((flags.defaults.get(name) for name in momentum), None))
    if nesterov:
        draft.put("training.optimizer.nesterov", True, source)
    put_float(draft, "training.optimizer.weightDecay", flags.setting(*decay))


def put_horovod(call: Call, draft: Draft, *, source: str) -> None:
    """Set replicas whose gradients Horovod sums; one process alone has nothing to sum."""
    if call.ranks.total > 1:
        put_parallel(draft, "ddp", source=source, implementation="horovod")


def put_replicas(draft: Draft, number: int, *, source: str, strategy: str = "ddp") -> None:
    """Set *number* whole copies of the model, however they exchange gradients."""
    if number > 1:
        put_parallel(draft, strategy, source=source)
        draft.put("parallelism.dataParallel", number, source)


def listed_devices(flag: Flag | None) -> int | None:
    """Return how many devices *flag* lists (`0,1,2`), or None if it lists none that is known."""
    if flag is None or not all(word.is_known for word in flag.values):
        return None
    text = ",".join(word.text for word in flag.values).strip().strip("[]").replace(" ", "")
    if not _DEVICES.fullmatch(text):
        return None
    return len(set(text.rstrip(",").split(",")))


def is_unset(flag: Flag | None) -> bool:
    """Return whether *flag* is given and empty."""
    return flag is not None and flag.value is not None and flag.value.text.strip() == ""


def is_off_gpu(flags: Flags) -> bool:
    """Return whether the flags tell a script to leave the GPU alone."""
    device = flags.setting("device")
    word = device.value.text.lower() if device is not None and device.value is not None else ""
    return word == "cpu" or flags.is_on("no_cuda")


def unsupported_model(draft: Draft, path: str, reason: str, *also: str) -> None:
    """Note a model that no source of a JobSpec has; *also*: spec paths that go with it."""
    draft.gap(
        "model.name",
        *also,
        code=ReasonCode.UNSUPPORTED,
        path=path,
        reason=reason,
        hint=annotation_hint("model.name"),
    )


def with_defaults(flags: Flags, values: Mapping[str, object], *, told_by: str) -> Flags:
    """Return *flags* with *values* in front of the defaults they have."""
    return replace(flags, defaults={**flags.defaults, **defaults_of(values, told_by=told_by)})


def without_defaults(flags: Flags) -> Flags:
    """Return *flags* without defaults: a file that is not seen may say otherwise."""
    return replace(flags, defaults={})


def source_of(flag: Flag | None, otherwise: str) -> str:
    """Return where *flag* stands, or *otherwise* if it is not given."""
    return flag.source if flag is not None else otherwise


def note_likeness(call: Call, draft: Draft, name: str) -> None:
    """Note that a script is taken for that of the recipe *name* by more than its place."""
    recipe = load_recipe(name)
    if match_of(call.invocation, recipe) is Match.NO:
        draft.doubt(
            f"{call.origin}: {call.invocation.name:.80} is read by its name and the flags it "
            f"shares with {recipe.name}; its folder does not tell whether it is that program"
        )


def leave_sharing_open(call: Call, draft: Draft) -> None:
    """Let the gaps so far leave open too how cards share the work: the program decides that."""
    if call.gpus > 1 and not call.ranks.is_distributed:
        draft.gaps[:] = [
            replace(gap, closed_by=(*gap.closed_by, "parallelism.strategy")) for gap in draft.gaps
        ]
