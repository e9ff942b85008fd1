"""The flags of a program's command line, as argparse would take them.

    words, options -> Flags

`--k v`, `--k=v`, `-b 32`, `-b32`, `k=v`; `_` and `-` are the same; the last one wins; a unique
beginning of a name is enough.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from admission.detect.words import Word

_FALSE = frozenset({"false", "no", "n", "f", "0", "off", "null"})
NULL = "null"
"""A configuration's `null`: said, and nothing."""


class Takes(Enum):
    """How many values a flag takes."""

    NOTHING = 0
    ONE = 1
    SEVERAL = 2
    MAYBE = 3
    """One if the next word is no flag: what a flag we do not know is taken for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The flags a program declares."""

    names: Mapping[str, Takes]
    """Long names, with `_`."""
    short: Mapping[str, str] = field(default_factory=dict)
    """`b` -> the long name."""
    takes_pairs: bool = False
    """Any `key=value` is one: OmegaConf, Hydra and their like."""
    ordered: tuple[str, ...] = field(init=False)
    """The long names, to find unique beginnings in."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ordered", tuple(sorted(self.names)))

    def beginning_with(self, text: str) -> str | None:
        """Return the one name that begins with *text*, or None if there is none or several."""
        at = bisect_left(self.ordered, text)
        found = [name for name in self.ordered[at : at + 2] if text and name.startswith(text)]
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag as given."""

    name: str
    spelling: str
    values: tuple[Word, ...]
    where: str
    """`containers[0]`."""
    path: str
    """Field path of the container in the object."""
    origin: str
    is_open_ended: bool = False
    """How many words belong to it is for the next ones to say."""
    told_by: str = ""
    """Where it stands if that is no command line: `configmap train/x.yaml`, `default of X 1.2`."""

    @property
    def value(self) -> Word | None:
        """Return the only or first value."""
        return self.values[0] if self.values else None

    @property
    def source(self) -> str:
        """Return where the value stands, as `sources` names it."""
        if self.told_by:
            return f"{self.told_by} {self.spelling}"
        return f"{self.where}.{self.origin or 'args'} {self.spelling}"

    @property
    def field(self) -> str:
        """Return the field path that holds the flag."""
        return f"{self.path}.{self.origin.partition(' ')[0] or 'args'}"

    @property
    def is_on(self) -> bool:
        """Return whether a switch is on: given, and not followed by a word for no."""
        return not self.values or self.values[0].text.lower() not in _FALSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What was given, in order."""

    given: tuple[Flag, ...] = ()
    positional: tuple[Word, ...] = ()
    foreign: tuple[Flag, ...] = ()
    """Those of them that the options do not name."""
    defaults: Mapping[str, Flag] = field(default_factory=dict)
    """What the program takes where nothing is given, by name."""

    def setting(self, *names: str) -> Flag | None:
        """Return the last flag given under one of *names*, else the program's default of one.

        One that is `null` is nothing.
        """
        found = self.get(*names)
        if found is None:
            found = next((self.defaults[name] for name in names if name in self.defaults), None)
        is_null = found is not None and found.value is not None and found.value.text == NULL
        return None if is_null else found

    def over(self, below: Flags) -> Flags:
        """Return these flags with those of *below* under them: a configuration file's."""
        return replace(
            self,
            given=(*below.given, *self.given),
            foreign=(*below.foreign, *self.foreign),
            defaults={**below.defaults, **self.defaults},
        )

    def get(self, *names: str) -> Flag | None:
        """Return the last flag given under one of *names*."""
        found = [flag for flag in self.given if flag.name in names]
        return found[-1] if found else None

    def is_on(self, *names: str) -> bool:
        """Return whether one of the switches is given and on."""
        return any(flag is not None and flag.is_on for flag in map(self.get, names))

    def has(self, *names: str) -> bool:
        """Return whether one of *names* is given."""
        return self.get(*names) is not None

    @property
    def hidden(self) -> Word | None:
        """Return an unresolved word that may hold more flags (`$EXTRA_ARGS`), if there is one."""
        open_ended = (word for flag in self.given if flag.is_open_ended for word in flag.values)
        return next((word for word in (*self.positional, *open_ended) if word.holds_more), None)


def parse_flags(words: tuple[Word, ...], options: Options, *, where: str, path: str) -> Flags:
    """Return the flags in *words*; *where* and *path* name the container they stand in."""
    given: list[Flag] = []
    positional: list[Word] = []
    foreign: list[Flag] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        spelling, is_joined, joined = _split(word, options)
        if spelling is None:
            positional.append(word)
            continue
        for reference in word.unresolved:
            if reference in spelling:
                positional.append(word.part(reference))
        known = _resolve(spelling, options)
        name = known or _normal(spelling)
        takes = options.names.get(name, Takes.MAYBE)
        values = [word.part(joined)] if is_joined else []
        limit = 0 if takes is Takes.NOTHING else len(words) if takes is Takes.SEVERAL else 1
        while not is_joined and len(values) < limit and at < len(words):
            if _is_flag(words[at]) and not (takes is Takes.ONE and _is_negative(words[at].text)):
                break
            values.append(words[at])
            at += 1
        flag = Flag(
            name=name,
            spelling=spelling,
            values=tuple(values),
            where=where,
            path=path,
            origin=word.origin,
            is_open_ended=not is_joined and takes in (Takes.SEVERAL, Takes.MAYBE),
        )
        given.append(flag)
        if known is None:
            foreign.append(flag)
    return Flags(given=tuple(given), positional=tuple(positional), foreign=tuple(foreign))


def _split(word: Word, options: Options) -> tuple[str | None, bool, str]:
    """Return a word's flag, whether a value is joined to it, and that value."""
    text = word.text
    if not _is_flag(word):
        key, equals, value = text.partition("=")
        is_pair = bool(equals) and (
            _normal(key) in options.names or (options.takes_pairs and _is_key(key))
        )
        return (key, True, value) if is_pair else (None, False, "")
    key, equals, value = text.partition("=")
    if text.startswith("--") or _resolve(key, options) is not None:
        return key, bool(equals), value
    if text[1] in options.short and len(text) > 2:
        return text[:2], True, text[2:].removeprefix("=")
    return key, bool(equals), value


def _is_key(text: str) -> bool:
    """Return whether *text* may stand before the `=` of a pair: `model.lr`, `+data.size`."""
    plain = text.lstrip("+~").replace(".", "").replace("_", "").replace("-", "").replace("/", "")
    return plain.isalnum() and plain.isascii()


def _resolve(spelling: str, options: Options) -> str | None:
    """Return the long name for *spelling*: exact, short, or the unique beginning of one."""
    name = _normal(spelling)
    if spelling.startswith("-") and not spelling.startswith("--"):
        return options.short.get(spelling[1:])
    if name in options.names:
        return name
    return options.beginning_with(name)


def _normal(spelling: str) -> str:
    return spelling.lstrip("-+~").replace("-", "_")


def _is_flag(word: Word) -> bool:
    text = word.text
    return len(text) > 1 and text[0] == "-" and not _is_negative(text) and " " not in text[:2]


def _is_negative(text: str) -> bool:
    return text[0] == "-" and text[1:].replace(".", "", 1).replace("e-", "").isdigit()
