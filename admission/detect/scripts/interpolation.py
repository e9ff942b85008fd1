"""References inside one configuration: OmegaConf's `${variables.max_seq_len}` and `${.length}`.

Flags -> Flags, with what refers to another plain key of the same file replaced
"""

from __future__ import annotations

import re
from dataclasses import replace

from admission.detect.flags import Flag, Flags
from admission.detect.words import Word, literal

_REFERENCE = re.compile(r"\$\{(\.*)([\w.\-]+)\}")
_MAX_STEPS = 8


def interpolated(flags: Flags) -> Flags:
    """Return *flags* with every value that is one reference replaced by what it refers to.

    One that refers to nothing, or in a circle, stays: it is not resolved.
    """
    values = {flag.name: flag for flag in flags.given}
    return replace(flags, given=tuple(_resolved(flag, values) for flag in flags.given))


def _resolved(flag: Flag, values: dict[str, Flag]) -> Flag:
    found = flag
    for _ in range(_MAX_STEPS):
        word = found.value
        match = _REFERENCE.fullmatch(word.text.strip()) if word is not None else None
        target = values.get(_target(found.name, match)) if match is not None else None
        if target is None:
            break
        found = target
    return replace(flag, values=_plain(found.values)) if found is not flag else flag


def _plain(words: tuple[Word, ...]) -> tuple[Word, ...]:
    return tuple(literal(word.text) for word in words)


def _target(name: str, match: re.Match[str]) -> str:
    """Return the key that a reference in *name* means; leading dots go up, one of them nowhere."""
    dots, key = match.group(1), match.group(2).replace("-", "_")
    if not dots:
        return key
    parents = name.split(".")[: -len(dots)]
    return ".".join((*parents, key))
