"""Calls of programs that train nothing whatever the program is.

    words -> whether it only explains itself; whether `$( … )` starts a program with it

`--help` and `--version` end a program before it begins.
"""

from __future__ import annotations

from collections.abc import Sequence

from admission.detect.launchers import LAUNCHERS
from admission.detect.launchers.python import is_python
from admission.detect.scripted import SHELLS
from admission.detect.words import Word

_EXPLAINING = frozenset({"--help", "--version"})
_PYTHON_VERSION = frozenset({"-V", "-VV"})
_CODE = ("-c", "-")
_SCRIPTS = (".py", ".sh")


def only_explains(words: Sequence[Word]) -> bool:
    """Return whether the command prints its help or version, and ends.

    What a shell is given as a text may have those words for another program.
    """
    name = _name(words)
    if name in SHELLS:
        return words[1:2] != () and words[1].text in _EXPLAINING
    if is_python(name) and any(word.text in _PYTHON_VERSION for word in words[1:2]):
        return True
    return any(word.text in _EXPLAINING for word in words[1:])


def starts_program(words: Sequence[Word]) -> bool:
    """Return whether a command inside `$( … )` may train: Python's own one-liners only ask."""
    name = _name(words)
    if is_python(name):
        return len(words) > 1 and words[1].text not in _CODE and not only_explains(words)
    return name in LAUNCHERS or name in SHELLS or name.endswith(_SCRIPTS)


def _name(words: Sequence[Word]) -> str:
    return words[0].text.rpartition("/")[2] if words else ""
