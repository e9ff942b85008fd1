"""What makes a reading of the Trainer's flags uncertain, or wrong.

Call -> doubts and gaps in the draft
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import SHARDED_HINT, Draft, integer_of
from admission.detect.scope import OPEN
from admission.detect.scripts.family import Call
from admission.detect.scripts.hf_flags import BORROWED, FREEZING, RESIZING
from admission.detect.scripts.strangers import note_strangers, note_subject

_ACCELERATE = "ACCELERATE_"
_SHARDING = ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED", "ACCELERATE_USE_MEGATRON_LM")
_READ = ("use_peft", "use_dora", "load_in_4bit", "load_in_8bit")
"""Flags of TRL that are read; the others of its adapters only beside them."""


def note_doubts(call: Call, draft: Draft, *, is_own: bool) -> None:
    """Note flags and variables that no example of the library has, and details not read."""
    flags = call.flags
    is_peft = flags.is_on("use_peft")
    is_quantised = flags.has("load_in_4bit", "load_in_8bit")
    borrowed = [flag for flag in flags.given if flag.name in BORROWED and flag not in flags.foreign]
    unread = [
        flag
        for flag in borrowed
        if not (is_peft and "lora" in flag.name)
        and not (is_quantised and "bnb" in flag.name)
        and flag.name not in _READ
    ]
    for flag in unread:
        note_subject(flag, draft)
    for name in FREEZING:
        frozen = flags.get(name)
        if frozen is not None:
            note_subject(frozen, draft)
    if is_own and (borrowed or flags.positional):
        words = ", ".join(
            dict.fromkeys((*(f.spelling for f in borrowed), *(w.text for w in flags.positional)))
        )
        draft.doubt(f"{call.origin}: {call.invocation.name} does not take {words:.120}")
    if flags.has(*RESIZING):
        draft.doubt(f"{call.origin}: what {call.invocation.name} feeds the model is not read")
    note_surroundings(call, draft, is_own=is_own)


def note_surroundings(call: Call, draft: Draft, *, is_own: bool) -> None:
    """Note what is around a program of the Trainer's kind: others' flags, accelerate's variables.

    Flags of a configuration file are no strangers: nothing checks their names here.
    """
    foreign = [flag for flag in call.flags.foreign if not flag.told_by]
    note_strangers(call, draft, foreign, is_own=is_own)
    _accelerate(call, draft)
    _samples(call, draft)


def _accelerate(call: Call, draft: Draft) -> None:
    """Note variables by which accelerate shards a job, or that may be among those not read."""
    variables = call.invocation.variables
    for name in variables:
        if not name.startswith(_ACCELERATE):
            continue
        text = "".join(word.text for word in variables[name]).lower()
        if name in _SHARDING and text not in ("", "0", "false", "no"):
            draft.gap(
                "parallelism.strategy",
                code=ReasonCode.UNSUPPORTED,
                path=f"{call.invocation.path}.env",
                reason=f"{name} {text:.40} makes accelerate shard the job, not read yet",
                hint=SHARDED_HINT,
            )
        elif name not in _SHARDING:
            draft.doubt(f"{call.invocation.path}.env: what {name:.60} decides is not read")
    if OPEN in variables:
        draft.doubt(
            f"{call.invocation.path}: variables from elsewhere, not read, may shard the job"
        )


def _samples(call: Call, draft: Draft) -> None:
    """Note a run that never fills a batch."""
    flag, batch = call.flags.get("max_train_samples"), draft.get("input.batchSize")
    number = integer_of(flag.value.text) if flag is not None and flag.value is not None else None
    if flag is not None and (number is None or (batch is not None and number < batch)):
        draft.doubt(
            f"{flag.field}: {flag.spelling} leaves fewer samples than a batch", "input.batchSize"
        )
