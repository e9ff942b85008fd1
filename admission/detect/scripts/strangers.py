"""What a command line says that a script's own parser does not know.

    Call -> doubts and gaps in the draft

A flag of somebody else's means a script that was changed: nobody is refused on a reading of it.
One that speaks of adapters, frozen parts, fewer bits or sharding makes the reading wrong: a gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from admission.codes import ReasonCode
from admission.detect.draft import SHARDED_HINT, Draft
from admission.detect.flags import Flag
from admission.detect.scripts.family import Call

MAX_NAMED = 3
MAX_VALUE = 200
"""Longer values are no choice of a method."""
ADAPTER_HINT = (
    "adapters and partly frozen models are not estimated yet; if every weight is trained, state it "
    "in the annotation vramgate.dev/spec: adapter: null"
)
QUANTIZATION_HINT = (
    "quantised models are not estimated yet; if the weights keep their precision, state it in the "
    "annotation vramgate.dev/spec: quantization: null"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Something that changes the memory of a whole job."""

    name: str
    path: str
    """The spec path that, stated by the owner, settles it."""
    hint: str
    flags: re.Pattern[str]
    files: re.Pattern[str]
    """As a part of a script's name, or of the value of an unknown flag."""


_ADAPTERS = re.compile(r"lora|peft|(^|[^a-z])(dora|ia3)|adapter")
SUBJECTS = (
    Subject(
        name="an adapter",
        path="adapter",
        hint=ADAPTER_HINT,
        flags=re.compile(
            r"lora|peft|(^|_)dora|adapter|finetuning_type|(prefix|prompt|p)_tun|pre_seq_len|galore"
        ),
        files=_ADAPTERS,
    ),
    Subject(
        name="frozen weights",
        path="adapter",
        hint=ADAPTER_HINT,
        flags=re.compile(
            r"freez|frozen|trainable|(^|_)tune_|linear_prob|head_only|only_head|last_layer|only_train"
        ),
        files=re.compile(r"freez|frozen|lin(ear)?_?prob"),
    ),
    Subject(
        name="quantised weights",
        path="quantization",
        hint=QUANTIZATION_HINT,
        flags=re.compile(r"(^|_)bits?($|_)|quant|(^|_)bnb|\dbit|int[48]($|_)|gptq|awq|nf4|fp8"),
        files=re.compile(r"quant|gptq|awq|[48]_?bit|int[48]"),
    ),
    Subject(
        name="sharding or offload",
        path="parallelism.strategy",
        hint=SHARDED_HINT,
        flags=re.compile(
            r"(^|_)zero(?!_(grad|shot|pad|init|mean))|fsdp|deepspeed|offload|shard|megatron|"
            r"(tensor|pipeline|model|context|sequence)_parallel|(^|_)[tp]p(_size|_degree)?$"
        ),
        files=re.compile(r"fsdp|deepspeed|zero[123]|offload|megatron"),
    ),
)
_OFF = frozenset({"false", "no", "n", "f", "0", "off", "none", "null", "full", "16", "32", ""})
_NEGATIONS = ("no_", "disable_", "without_")


def note_strangers(call: Call, draft: Draft, foreign: Iterable[Flag], *, is_own: bool) -> None:
    """Note *foreign* flags and what they speak of; *is_own*: the script is the library's own."""
    flags = tuple(foreign)
    if not is_own:
        _note_name(call, draft)
    for flag in flags:
        note_subject(flag, draft)
    script = call.invocation.name
    names = ", ".join(tuple(dict.fromkeys(flag.spelling for flag in flags))[:MAX_NAMED])
    if not is_own:
        also = f", nor are its flags {names:.120}" if names else ""
        draft.doubt(
            f"{call.origin}: {script:.80} is not a script that is known{also}; it is read by the "
            "flags it shares with one, and what it does otherwise is not seen"
        )
    elif names:
        draft.doubt(
            f"{call.origin}: {script:.80} does not have the flags {names:.120} where it comes "
            "from; it was changed, and what else it does is not seen"
        )


def note_subject(flag: Flag, draft: Draft) -> bool:
    """Note a gap if *flag* speaks of something that changes the whole job; return whether so."""
    name = flag.spelling.lstrip("-").replace("-", "_").lower()
    value = flag.value.text.lower() if flag.value is not None else "true"
    if name.startswith(_NEGATIONS) or value in _OFF:
        return False
    for subject in SUBJECTS:
        if subject.flags.search(name) or (len(value) < MAX_VALUE and subject.files.search(value)):
            draft.gap(
                subject.path,
                code=ReasonCode.UNSUPPORTED,
                path=flag.field,
                reason=f"{flag.spelling:.60} {value:.40} may mean {subject.name}, not read yet",
                hint=subject.hint,
            )
            return True
    return False


def _note_name(call: Call, draft: Draft) -> None:
    """Note a gap if the script's name says what it does to the model."""
    name = call.invocation.name.lower()
    for subject in SUBJECTS:
        if subject.files.search(name):
            draft.gap(
                subject.path,
                code=ReasonCode.UNSUPPORTED,
                path=call.origin,
                reason=f"{name:.80} may mean {subject.name} by its name, not read yet",
                hint=subject.hint,
            )
