"""One layer of a command line taken off.

words -> Step(the rest, what this layer says)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from admission.detect.files import File, Files
from admission.detect.flags import Flag, Flags, Options, Takes, parse_flags
from admission.detect.invocation import Launch
from admission.detect.words import Variables, Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A command line, the container it stands in, and what it can see there."""

    words: tuple[Word, ...]
    where: str
    path: str
    variables: Variables = field(default_factory=dict)
    directory: str = ""
    files: Files = field(default_factory=Files)
    name: str = field(init=False)
    """The file name of the command."""

    def __post_init__(self) -> None:
        name = self.words[0].text.rpartition("/")[2] if self.words else ""
        object.__setattr__(self, "name", name)

    def inner(self, *words: Word) -> Line:
        """Return the line of *words*, in the same place."""
        return replace(self, words=words)

    def read_file(self, path: str) -> File:
        """Return the file at *path* as the command would find it."""
        return self.files.read(path, directory=self.directory)

    def value(self, name: str) -> Word | None:
        """Return the value of the variable *name*, if it has one."""
        found = self.variables.get(name)
        return found[0] if found else None

    def flag(self, spelling: str, *values: Word, told_by: str = "") -> Flag:
        """Return a flag of this line's command."""
        return Flag(
            name=spelling.lstrip("-").replace("-", "_"),
            spelling=spelling,
            values=values,
            where=self.where,
            path=self.path,
            origin=values[0].origin if values else "",
            told_by=told_by,
        )

    def variable_flag(self, name: str) -> Flag | None:
        """Return the variable *name* as if it were a flag; None where it is not set."""
        word = self.value(name)
        if word is None or not word.text:
            return None
        return replace(self.flag(name, word), told_by="env", origin="env")


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


def started(
    flags: Flags, rest: tuple[Word, ...], launch: Launch, *, module: str = "module"
) -> Step | None:
    """Return the step to the script in *rest*: one a launcher calls with Python."""
    if not rest:
        return None
    if flags.has("no_python"):
        return Step(rest=rest, launch=launch)
    return Step(rest=rest[1:], program=rest[0], is_module=flags.has(module), launch=launch)


def options_of(ones: str, switches: str, **short: str) -> Options:
    """Return the options of a launcher from two tables that are written as text."""
    return Options(
        names={
            **dict.fromkeys(ones.split(), Takes.ONE),
            **dict.fromkeys(switches.split(), Takes.NOTHING),
        },
        short=short,
    )
