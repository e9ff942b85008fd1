"""One layer of a command line taken off.

words -> Step(the rest, what this layer says)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from admission.detect.flags import Flags, Options, Takes, parse_flags
from admission.detect.invocation import Launch
from admission.detect.words import Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A command line and the container it stands in."""

    words: tuple[Word, ...]
    where: str
    path: str

    @property
    def name(self) -> str:
        """Return the file name of the command."""
        return self.words[0].text.rpartition("/")[2] if self.words else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is left after one layer. `program` is set at the last one."""

    rest: tuple[Word, ...] = ()
    program: Word | None = None
    is_module: bool = False
    launch: Launch | None = None
    assigned: Mapping[str, tuple[Word, ...] | None] = field(default_factory=dict)
    """Variables that this layer sets for the rest; None for one it takes away."""


Launcher = Callable[[Line], Step | None]


def split_options(line: Line, options: Options) -> tuple[Flags, tuple[Word, ...]]:
    """Return a launcher's own flags and the words from the first that is not one of them.

    A flag we do not know is taken for one with a value only if it is written `--k=v`.
    """
    words = line.words[1:]
    at = 0
    while at < len(words) and words[at].text.startswith("-") and len(words[at].text) > 1:
        text = words[at].text
        at += 1
        if text == "--":
            break
        if "=" in text:
            continue
        name = text.lstrip("-").replace("-", "_")
        name = options.short.get(name, name) if not text.startswith("--") else name
        exact = name if name in options.names else options.beginning_with(name) or name
        if options.names.get(exact, Takes.NOTHING) is not Takes.NOTHING:
            at += 1
    flags = parse_flags(words[:at], options, where=line.where, path=line.path)
    return flags, words[at:]
