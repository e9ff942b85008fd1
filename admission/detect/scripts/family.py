"""What the reader of a family of scripts is given and gives.

Call -> Match; Call, Draft -> (the draft, filled)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from admission.detect.draft import Draft
from admission.detect.files import File, Files
from admission.detect.flags import Flags
from admission.detect.invocation import Invocation
from admission.detect.ranks import Ranks


class Match(IntEnum):
    """How sure a family is that a script is its own."""

    NO = 0
    FLAGS = 1
    """Every flag is one of its parser's, and at least one is nobody else's."""
    PLACE = 2
    """The folder, module or URL is the family's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a script and how its job is spread."""

    invocation: Invocation
    flags: Flags
    ranks: Ranks
    gpus: int
    """GPUs the process sees."""
    files: Files
    """Files that the script could open and we can see."""

    def read_file(self, path: str) -> File:
        """Return the file at *path* as the script would find it."""
        return self.files.read(path, directory=self.invocation.directory)

    @property
    def origin(self) -> str:
        """Return the field path that holds the command line."""
        words = (*self.invocation.arguments, self.invocation.program)
        return f"{self.invocation.path}.{words[0].origin or 'args'}"


def never(_flags: Flags) -> bool:
    """Return False: no flag of the script leaves the GPU alone."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Scripts that share their flags."""

    name: str
    flags: Callable[[Invocation], Flags]
    match: Callable[[Invocation, Flags], Match]
    read: Callable[[Call, Draft], None]
    is_on_cpu: Callable[[Flags], bool] = never
    """Whether the flags tell the script to leave the GPU alone."""
    may_claim: Callable[[Invocation], bool] = lambda _invocation: True
    """A quick look, before flags are parsed: False if the script is surely none of it."""


def source_of_default(script: str) -> str:
    """Return how the default of *script* is named in `sources`."""
    return f"default of {script}"
