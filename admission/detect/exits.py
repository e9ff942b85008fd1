"""How a text of a shell may end before its last command.

words -> Exit
"""

from __future__ import annotations

from enum import Enum, auto

from admission.detect.words import Word


class Exit(Enum):
    """How a text may end before its last command."""

    RETURN = auto()
    SUCCESS = auto()
    FAILURE = auto()
    """The job fails if this runs, so what follows is asked for all the same."""


def status_of(words: tuple[Word, ...]) -> Exit:
    """Return how the script ends at `exit`, by its number."""
    text = words[1].text if len(words) > 1 and words[1].is_known else "0"
    return Exit.FAILURE if text.isdigit() and text.strip("0") else Exit.SUCCESS


def waits_forever(words: tuple[Word, ...]) -> bool:
    """Return whether nothing after *words* runs."""
    texts = [word.text for word in words]
    return (texts[0] == "sleep" and texts[1:2] in (["infinity"], ["inf"])) or (
        texts[0] == "tail" and ("-f" in texts or "-F" in texts)
    )
