"""Words of a command line, with what in them is not known.

Word: text, where it stands, the references that nothing resolves
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from admission.codes import ReasonCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One argument. What could not be resolved stays in the text as it was written."""

    text: str
    origin: str = ""
    """The field it comes from: `command`, `args`, or `env NAME`."""
    unresolved: tuple[str, ...] = ()
    """References that nothing in the object resolves: `${STUDENT_MODEL}`, `{{inputs.x}}`."""
    is_template: bool = False
    """One of them is a template's: no shell would ever expand it."""

    @property
    def is_known(self) -> bool:
        """Return whether the text is what the program will see."""
        return not self.unresolved

    @property
    def code(self) -> ReasonCode:
        """Return why the word is not known."""
        return ReasonCode.TEMPLATE if self.is_template else ReasonCode.UNRESOLVED_VARIABLE

    def part(self, text: str) -> Word:
        """Return the word for *text*, a part of this one."""
        return replace(
            self, text=text, unresolved=tuple(name for name in self.unresolved if name in text)
        )


Variables = Mapping[str, tuple[Word, ...]]
"""Name -> value; more than one word for a shell array."""


def literal(text: str, *, origin: str = "") -> Word:
    """Return the word for a *text* that no shell reads: `$NAME` in it is a template's."""
    names = tuple(template_references(text))
    return Word(text=text, origin=origin, unresolved=names, is_template=bool(names))


def template_references(text: str) -> list[str]:
    """Return the `$NAME`, `${NAME}`, `$(NAME)` and `{{…}}` in *text*, in order."""
    found = []
    at = 0
    last = {closing: text.rfind(closing) for closing in ("}}", "}", ")")}
    while at < len(text):
        end = _reference_end(text, at, last)
        if end:
            found.append(text[at:end])
        at = end or at + 1
    return found


def _reference_end(text: str, at: int, last: Mapping[str, int]) -> int:
    """Return where the reference that starts at *at* ends, or 0 if none starts there.

    *last* has where each closing bracket stands last, so that none is searched for in vain.
    """
    if text.startswith("{{", at):
        return text.find("}}", at) + 2 if last["}}"] > at else 0
    if text[at] != "$" or at + 1 >= len(text):
        return 0
    for opening, closing in (("{", "}"), ("(", ")")):
        if text[at + 1] == opening:
            return text.find(closing, at) + 1 if last[closing] > at else 0
    end = at + 1
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return end if end > at + 1 and not text[at + 1].isdigit() else 0


def words(text: str) -> tuple[str, ...]:
    """Return the words of a table that is written as text."""
    return tuple(text.split())
