"""Words of a command line, with what in them is not known.

Word: text, where it stands, the references that nothing resolves
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from admission.codes import ReasonCode

MAX_REFERENCES = 64
"""In one word. With more, the whole word counts as one reference."""
MAX_REFERENCE = 256
_MARK = re.compile(r"\$|\{\{")
_NAME = re.compile(r"[^\W\d]\w*")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Word(NamedTuple):
    """One argument. What could not be resolved stays in the text as it was written.

    A tuple, because a script has hundreds: frozen dataclasses take three times as long to make.
    """

    text: str
    origin: str = ""
    """The field it comes from: `command`, `args`, or `env NAME`."""
    unresolved: tuple[str, ...] = ()
    """References that nothing in the object resolves: `${STUDENT_MODEL}`, `{{inputs.x}}`."""
    is_template: bool = False
    """One of them is a template's: no shell would ever expand it."""
    assumed: tuple[str, ...] = ()
    """Variables that nothing in the object sets, so that their default stands here. The image may
    set them."""

    @property
    def is_known(self) -> bool:
        """Return whether the text is what the program will see."""
        return not self.unresolved

    @property
    def code(self) -> ReasonCode:
        """Return why the word is not known."""
        return ReasonCode.TEMPLATE if self.is_template else ReasonCode.UNRESOLVED_VARIABLE

    @property
    def holds_more(self) -> bool:
        """Return whether the word is nothing but references: it may be several words, or flags."""
        rest = self.text
        for reference in self.unresolved:
            rest = rest.replace(reference, "")
        return bool(self.unresolved) and not rest.strip()

    def part(self, text: str) -> Word:
        """Return the word for *text*, a part of this one."""
        if not self.unresolved:
            return self._replace(text=text)
        kept = tuple(
            name
            for name in self.unresolved
            if name in text or (len(name) > MAX_REFERENCE and text in name)
        )
        return self._replace(text=text, unresolved=kept)


Variables = Mapping[str, tuple[Word, ...]]
"""Name -> value; more than one word for a shell array."""


def literal(text: str, *, origin: str = "") -> Word:
    """Return the word for a *text* that no shell reads: `$NAME` in it is a template's."""
    names = references(text, template_references(text))
    return Word(text=text, origin=origin, unresolved=names, is_template=bool(names))


def references(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return *names*, what is not resolved in *text*, each once; too many are the whole text."""
    distinct = tuple(dict.fromkeys(names))
    return distinct if len(distinct) <= MAX_REFERENCES else (text,)


def template_references(text: str) -> list[str]:
    """Return the `$NAME`, `${NAME}`, `$(NAME)` and `{{…}}` in *text*, in order."""
    if "$" not in text and "{{" not in text:
        return []
    found = []
    last = {closing: text.rfind(closing) for closing in ("}}", "}", ")")}
    at = 0
    while match := _MARK.search(text, at):
        end = _reference_end(text, match.start(), last)
        if end:
            found.append(text[match.start() : end])
        at = end or match.start() + 1
    return found


def _reference_end(text: str, at: int, last: Mapping[str, int]) -> int:
    """Return where the reference that starts at *at* ends, or 0 if none starts there.

    *last* has where each closing bracket stands last, so that none is searched for in vain.
    """
    if text.startswith("{{", at):
        return text.find("}}", at) + 2 if last["}}"] > at else 0
    for opening, closing in (("${", "}"), ("$(", ")")):
        if text.startswith(opening, at):
            return text.find(closing, at) + 1 if last[closing] > at else 0
    match = _NAME.match(text, at + 1)
    return match.end() if match else 0


def written(text: str) -> str:
    """Return *text* with what is no character replaced, as the API server does with an object."""
    return _SURROGATE.sub("\ufffd", text) if not text.isascii() else text


def words(text: str) -> tuple[str, ...]:
    """Return the words of a table that is written as text."""
    return tuple(text.split())
