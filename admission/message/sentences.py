"""What is said, as the API server and people get it: one breath, or one line a warning.

    Wording -> message, hints, warnings

All of it is plain text within bounds, whoever wrote the names in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from admission.message.wording import Wording
from admission.plaintext import plain, sentence, stopped

MAX_MESSAGE = 1500
"""Longest message: a denial is shown whole by kubectl."""
MAX_WARNING = 250
AIMED_WARNING = 120
"""Length that clients are asked to keep to (k8s.io/api/admission/v1 `AdmissionResponse`)."""
MAX_WARNINGS = 12
"""All warnings of a response are dropped over 4,096 characters: 12 * 250 stays below."""


def message_of(wording: Wording) -> str:
    """Return the wording in one breath."""
    sentences = [wording.need, *wording.why]
    if wording.changes:
        sentences.append(f"It fits {', or '.join(wording.changes)}")
    if wording.advice:
        sentences.append(f"Hint: {wording.advice}")
    first, *rest = (plain(text, limit=600) for text in sentences)
    text = " ".join([stopped(first), *map(sentence, rest)])
    return plain(text, limit=MAX_MESSAGE)


def hints_of(wording: Wording) -> tuple[str, ...]:
    """Return each way out as a phrase of its own."""
    advice = (wording.advice,) if wording.advice else ()
    return tuple(plain(hint) for hint in (*(f"fits {text}" for text in wording.changes), *advice))


def warnings_of(wording: Wording, *, about: str = "") -> tuple[str, ...]:
    """Return the wording as warnings, one line each; *about* names the unit in the first."""
    lines = [f"{about}{wording.need}", *wording.why, *_change_lines(wording.changes)]
    if wording.advice:
        lines.append(f"hint: {wording.advice}")
    return bounded(lines)


def bounded(lines: Iterable[str]) -> tuple[str, ...]:
    """Return warnings that every client shows: plain, short, not too many, none twice."""
    texts = dict.fromkeys(plain(line, limit=MAX_WARNING) for line in lines)
    return tuple(text for text in texts if text)[:MAX_WARNINGS]


def _change_lines(changes: Sequence[str]) -> Iterable[str]:
    """Yield the changes in lines of about the aimed length."""
    line = ""
    for change in changes:
        longer = f"{line}, or {change}" if line else f"hint: it fits {change}"
        if line and len(longer) > AIMED_WARNING:
            yield line
            longer = f"hint: or {change}"
        line = longer
    if line:
        yield line
