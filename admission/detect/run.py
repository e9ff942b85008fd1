"""The commands of a script as they are found.

    Command, what a script shares with its functions

Tuples, like `Word`: a script has a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from admission.detect.budget import Budget
from admission.detect.files import Files
from admission.detect.scope import Scope
from admission.detect.words import Variables, Word


class Redirection(NamedTuple):
    """`2> file`, `<< EOF`."""

    operator: str
    """`<`, `<<`, `<<<`, `>`, `>>`, `>|`, `>&`, …"""
    stream: str
    """`2` of `2>`, `&` of `&>`; empty if none is named."""
    target: Word
    """The file, or the text of a here-document."""


class Statement(NamedTuple):
    """One simple command as it is written."""

    words: tuple[Word, ...]
    assigned: Variables
    redirections: tuple[Redirection, ...] = ()
    is_alone: bool = False
    """It runs in a shell of its own."""
    reads_pipe: bool = False
    writes_pipe: bool = False
    is_repeated: bool = False
    """It is inside a loop."""


class Command(NamedTuple):
    """One simple command and what was set when it runs."""

    words: tuple[Word, ...]
    variables: Variables
    directory: str = ""
    is_sure: bool = True
    """It runs for certain, once what is before it succeeds."""
    given: Word | None = None
    """What it reads from its standard input, where that is known."""


@dataclass(slots=True, kw_only=True)
class Run:
    """What a script shares with its functions and the text it evaluates."""

    scope: Scope
    budget: Budget
    commands: list[Command]
    files: Files
    functions: dict[str, str]
    is_bash: bool = True
    """Other shells may take `\\n` in what `echo` prints for a line's end."""
    is_certain: bool = True
    """Inside `$( … )`: the command it is a part of runs for certain."""
    printed: list[Word | None] = field(default_factory=list)
    """What was printed so far, None for what is not known."""
