"""`python script.py`, `python -m module`, with Python's own switches in front."""

from __future__ import annotations

from admission.detect.launchers.step import Line, Step

_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


def is_python(name: str) -> bool:
    """Return whether *name* is an interpreter: python, python3, python3.11, pypy3."""
    stem = name.rstrip("0123456789.")
    return stem in ("python", "pypy")


def unwrap(line: Line) -> Step | None:
    """Return the script or module Python is told to run; None for `-c` and for no script."""
    at = 1
    words = line.words
    while at < len(words):
        text = words[at].text
        if text == "-m" and at + 1 < len(words):
            return Step(rest=words[at + 2 :], program=words[at + 1], is_module=True)
        if text.startswith("-m") and len(text) > 2 and not text.startswith("--"):
            return Step(rest=words[at + 1 :], program=words[at].part(text[2:]), is_module=True)
        if text in ("-c", "-"):
            return None
        if not text.startswith("-"):
            return Step(rest=words[at + 1 :], program=words[at])
        at += 2 if text in _WITH_VALUE else 1
    return None
