"""A JobSpec document while it is found out, with where each value came from.

    put(path, value, source) …  -> document, sources, gaps, warnings

The one thing in this package that changes while it is used; a draft lives within one reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from admission.codes import ReasonCode
from admission.detect.flags import Flag
from admission.values import Finding

MAX_INTEGER_DIGITS = 12
_CODES = {"input.batchSize": ReasonCode.NO_BATCH, "model.name": ReasonCode.NO_MODEL}
_ASSUMED = ("default of ", "stored dtype of the checkpoint")
"""Beginnings of sources of values that no one told."""

SHARDED_HINT = (
    "jobs sharded by DeepSpeed or FSDP are not estimated yet; the strategies none and ddp are: if "
    "it is one of them, state it in the annotation vramgate.dev/spec: parallelism: {strategy: ddp}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A finding, and the spec paths whose values, stated by the owner, would close it."""

    finding: Finding
    closed_by: tuple[str, ...]
    """Empty: nothing closes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Why what was read may not be what runs, and what the owner can state to settle it."""

    reason: str
    settled_by: tuple[str, ...]
    """Spec paths. Empty: nothing settles it."""


WHOLE = ("model.name", "input.batchSize")
"""Who states these two describes the job himself."""


@dataclass(slots=True)
class Draft:
    """What is known so far of one unit."""

    document: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    is_open: bool = False
    """A configuration that was not seen may decide whatever nobody says elsewhere."""
    is_idle: bool = False
    """It trains, but not on a GPU: the warnings say why."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """What the owner states: it will be merged over the document."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Models of the Hub that were put into the container before: folder -> id."""

    def put(self, path: str, value: object, source: str) -> None:
        """Set *value* at the dotted *path* of the document."""
        *parents, key = path.split(".")
        part = self.document
        for parent in parents:
            part = part.setdefault(parent, {})
        part[key] = value
        self.sources[path] = source

    def forget_defaults(self, *paths: str) -> None:
        """Take out what was taken by default, at *paths* or everywhere: it may be otherwise."""
        assumed = [path for path, said in self.sources.items() if said.startswith(_ASSUMED)]
        for path in assumed:
            if paths and path not in paths:
                continue
            parent, _, key = path.rpartition(".")
            part = value_at(self.document, parent) if parent else self.document
            if isinstance(part, dict):
                part.pop(key, None)
            self.sources = {
                other: said
                for other, said in self.sources.items()
                if other != path and not other.startswith(f"{path}.")
            }

    def get(self, path: str) -> Any:
        """Return the value found at *path*, or None."""
        return value_at(self.document, path)

    def known(self, path: str) -> Any:
        """Return the owner's value at *path*, or else the one found."""
        stated = value_at(self.given, path)
        return stated if stated is not None else self.get(path)

    def gap(
        self, *closed_by: str, code: str, path: str, reason: str, hint: str | None = None
    ) -> None:
        """Note that the values at *closed_by* are not known, and why."""
        finding = Finding(code=str(code), path=path, reason=reason, hint=hint)
        gap = Gap(finding=finding, closed_by=closed_by)
        if gap not in self.gaps:
            self.gaps.append(gap)

    def doubt(self, reason: str, *settled_by: str) -> None:
        """Note why nobody may be refused on this; by default the whole job settles it."""
        doubt = Doubt(reason=reason, settled_by=settled_by or WHOLE)
        if doubt not in self.doubts:
            self.doubts.append(doubt)

    def integer(self, path: str, flag: Flag | None, *, least: int = 1) -> bool:
        """Set the whole number of *flag* at *path*; return whether the flag was given.

        A number that is not resolved or not a number is a gap.
        """
        if flag is None:
            return False
        word = flag.value
        if word is not None and word.is_known:
            number = integer_of(word.text)
            if number is not None and number >= least:
                self.put(path, number, flag.source)
                return True
        self.gap(
            path,
            code=_code_of(flag, path),
            path=flag.field,
            reason=f"{flag.spelling} {word.text if word else ''}".strip()
            + (
                " is not resolved"
                if word is not None and not word.is_known
                else f" is not a whole number from {least}"
            ),
            hint=annotation_hint(path),
        )
        return True

    def word(self, path: str, flag: Flag | None) -> str | None:
        """Return the text of *flag*; note a gap at *path* if it is not resolved or empty."""
        if flag is None:
            return None
        word = flag.value
        if word is not None and word.is_known and word.text:
            return word.text
        self.gap(
            path,
            code=_code_of(flag, path),
            path=flag.field,
            reason=f"{flag.spelling} {word.text if word else ''}".strip()
            + (" is not resolved" if word is not None and not word.is_known else " has no value"),
            hint=annotation_hint(path),
        )
        return None


def is_stated(document: object, path: str) -> bool:
    """Return whether *document* has something at the dotted *path*, be it null."""
    parent, _, key = path.rpartition(".")
    part = value_at(document, parent) if parent else document
    return isinstance(part, Mapping) and key in part


def value_at(document: object, path: str) -> Any:
    """Return the value at the dotted *path* of *document*, or None."""
    part = document
    for key in path.split("."):
        if not isinstance(part, dict) or key not in part:
            return None
        part = part[key]
    return part


def integer_of(text: str) -> int | None:
    """Return the whole number in *text* (`32`, `1_024`, `4.0`), or None."""
    digits = text.strip().removesuffix(".0").replace("_", "")
    if not digits.isascii() or not digits.isdigit() or len(digits) > MAX_INTEGER_DIGITS:
        return None
    return int(digits)


def annotation_hint(path: str) -> str:
    """Return the sentence that says how to state the value at *path* by hand."""
    example = path.replace(".", ": {") + ": …" + "}" * path.count(".")
    return f"state it in the annotation vramgate.dev/spec: {example}"


def _code_of(flag: Flag, path: str) -> str:
    word = flag.value
    if word is not None and not word.is_known:
        return str(word.code)
    return str(_CODES.get(path, ReasonCode.INVALID_SPEC))
