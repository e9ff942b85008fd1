"""What the image-classification scripts have in common.

flags, defaults -> model, input, optimizer in the draft
"""

from __future__ import annotations

from dataclasses import dataclass

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint, integer_of
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.family import Call, Match, source_of_default
from admission.detect.scripts.strangers import note_strangers

MAX_SIDE = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Zoo:
    """A script's zoo and the defaults of its parser."""

    source: str
    script: str
    model: str
    batch_size: int
    weight_decay: float
    momentum: float = 0.9


def put_model(call: Call, draft: Draft, zoo: Zoo, flag: Flag | None) -> None:
    """Set the model by *flag*, or the script's default."""
    source = source_of_default(zoo.script)
    name = draft.word("model.name", flag) if flag is not None else zoo.model
    draft.put("framework", "pytorch", zoo.script)
    if name is None:
        return
    if not _is_zoo_name(name):
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=flag.field if flag else call.origin,
            reason=f"'{name:.80}' is not a model of {zoo.source}",
            hint=annotation_hint("model.name"),
        )
        return
    where = flag.source if flag is not None else source
    draft.put("model.source", zoo.source, zoo.script)
    draft.put("model.name", name, where)


def _is_zoo_name(name: str) -> bool:
    plain = name.replace("_", "").replace("-", "").replace(".", "")
    return plain.isascii() and plain.isalnum()


def put_batch(draft: Draft, zoo: Zoo, flag: Flag | None) -> None:
    """Set the batch size by *flag*, or the script's default."""
    if not draft.integer("input.batchSize", flag):
        draft.put("input.batchSize", zoo.batch_size, source_of_default(zoo.script))


def put_image_size(draft: Draft, flag: Flag | None, *, default: int | None, script: str) -> None:
    """Set C, H, W by *flag*: one side, or the three numbers; or three channels of *default*."""
    if flag is None:
        if default is not None:
            draft.put("input.imageSize", [3, default, default], source_of_default(script))
        return
    numbers = [integer_of(word.text) if word.is_known else None for word in flag.values]
    known = [number for number in numbers if number is not None and 0 < number <= MAX_SIDE]
    if known and len(known) == len(numbers) and len(known) in (1, 3):
        size = known if len(known) == 3 else [3, known[0], known[0]]
        draft.put("input.imageSize", size, flag.source)
        return
    shown = " ".join(word.text for word in flag.values)
    draft.gap(
        "input.imageSize",
        code=next((w.code for w in flag.values if not w.is_known), ReasonCode.INVALID_SPEC),
        path=flag.field,
        reason=f"{flag.spelling} {shown:.60} is no image size",
        hint=annotation_hint("input.imageSize"),
    )


def put_sgd(draft: Draft, call: Call, zoo: Zoo, *, nesterov: bool, source: str) -> None:
    """Set SGD with the momentum and weight decay given, or the script's own."""
    draft.put("training.optimizer", {"name": "sgd"}, source)
    put_number(draft, "training.optimizer.momentum", call.flags.get("momentum"), zoo.momentum, zoo)
    if nesterov:
        draft.put("training.optimizer.nesterov", True, source)
    put_number(
        draft,
        "training.optimizer.weightDecay",
        call.flags.get("weight_decay", "wd"),
        zoo.weight_decay,
        zoo,
    )


def put_number(draft: Draft, path: str, flag: Flag | None, default: float, zoo: Zoo) -> None:
    """Set the number of *flag* at *path*, or *default*."""
    word = flag.value if flag is not None else None
    if flag is not None and word is not None and word.is_known:
        try:
            number = float(word.text)
        except ValueError:
            number = -1.0
        if 0.0 <= number <= 1e6:
            draft.put(path, number, flag.source)
            return
    if default:
        draft.put(path, default, source_of_default(zoo.script))


def is_on_cpu(flags: Flags) -> bool:
    """Return whether `--device cpu` is given."""
    device = flags.get("device")
    return device is not None and device.value is not None and device.value.text == "cpu"


def note_call(call: Call, draft: Draft, *, match: Match, num_positional: int) -> None:
    """Note what on the command line is not the script's own, and a run of no epoch."""
    flags, script = call.flags, call.invocation.name
    note_strangers(call, draft, flags.foreign, is_own=True)
    if match is Match.FLAGS:
        draft.doubt(
            f"{call.origin}: a {script} with these flags may be another script than the one known; "
            "its folder does not tell"
        )
    if len(flags.positional) > num_positional:
        words = " ".join(word.text for word in flags.positional[num_positional:])
        draft.doubt(f"{call.origin}: {script} does not take {words:.80}")
    epochs = flags.get("epochs")
    if epochs is not None and (epochs.value is None or epochs.value.text.strip("0") == ""):
        draft.doubt(f"{epochs.field}: {epochs.spelling} leaves nothing to train")
