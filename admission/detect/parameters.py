"""The word being read, and the values that are put into it.

    variables, arguments, a reference -> text of the word

What nothing resolves stays in the word as it was written, and is listed in it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from admission.detect.budget import Budget, LimitError
from admission.detect.pieces import Building, is_open, split_text
from admission.detect.scope import Scope
from admission.detect.words import Word, references, template_references

MAX_DEPTH = 16
"""How deep defaults nest."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|#")
_INDEX = re.compile(r"\[(\d{1,4})\]")


class Parameters(ABC):
    """Builds the words of one text. Used once."""

    def __init__(self, script: Word, *, scope: Scope, budget: Budget) -> None:
        self.text = script.text
        self.origin = script.origin
        self.at = 0
        self.scope = scope
        self.budget = budget
        self.assigned: dict[str, tuple[Word, ...]] = {}
        """Set for the command being read only."""
        self.effects: dict[str, tuple[Word, ...]] = {}
        """What the expansions of the command being read set: `${X:=8}`, `$((X = 8))`."""
        self.words: list[Word] = []
        self.word = Building(origin=self.origin)
        self.depth = 0
        """How deep defaults nest."""
        self.num_spliced = 0
        """How many words the last `$@` or `${NAME[@]}` stood for."""

    def end_word(self) -> None:
        """Add the word that was read, if one was started."""
        if self.word.is_started:
            self.add_word(self.finish_word())

    def add_word(self, word: Word) -> None:
        """Add *word* to the words of the command."""
        self.budget.add_word()
        self.words.append(word)

    @abstractmethod
    def read_default(self, text: str) -> tuple[Word, ...]:
        """Return the words of the default in `${NAME:-default}`."""

    def _parameter(self, body: str, start: int, *, quoted: bool) -> None:
        """Expand `NAME`, `NAME[@]` and the forms with `-`, `=` and `+`; others stay unresolved."""
        match = _NAME.match(body)
        name = match.group() if match else ""
        rest = body[len(name) :]
        if not name and body in ("@", "*"):
            self._splice(self.scope.arguments, quoted=quoted, is_joined=body == "*")
        elif not name or (name == "#" and rest):
            self.unresolved(self.text[start : self.at])
        elif rest in ("[@]", "[*]"):
            value = self._value_of(name) or ()
            self._splice(value, quoted=quoted, is_joined=rest == "[*]")
        elif (item := self._item(name, rest)) is not None:
            self._value(item, quoted=quoted)
        else:
            self._variable(name, rest, start, quoted=quoted)

    def _item(self, name: str, rest: str) -> Word | None:
        """Return the item of `NAME[3]`, if the array has it and is known so far."""
        match = _INDEX.fullmatch(rest)
        value = self._value_of(name) if match is not None else None
        if match is None or value is None or int(match.group(1)) >= len(value):
            return None
        before = value[: int(match.group(1)) + 1]
        return None if any(word.holds_more for word in before) else before[-1]

    def _variable(self, name: str, rest: str, start: int, *, quoted: bool) -> None:
        value = self._value_of(name)
        operator = rest[:2] if rest[:1] == ":" else rest[:1]
        text = rest[len(operator) :]
        is_empty = value is not None and len(value) == 1 and value[0].text == ""
        is_open_here = self._is_open_ended() if name.isdigit() else self.scope.is_open
        is_closed = not is_open_here
        is_missing = (value is None and is_closed) or (is_empty and operator[:1] == ":")
        if operator in ("-", ":-", "=", ":=") and is_missing:
            self._default(text, quoted=quoted, name=name if value is None else "")
            if operator[-1] == "=":
                assumed = self.word.assumed
                self.effects[name] = (
                    Word(text=text, unresolved=_references_in(text), assumed=assumed),
                )
        elif operator in ("+", ":+") and value is not None and not is_open(value):
            if not is_missing:
                self._default(text, quoted=quoted)
        elif value is not None and operator in ("", "-", ":-", "=", ":="):
            self._value(value[0] if value else Word(text=""), quoted=quoted)
        elif name.isdigit() and name != "0" and is_closed and not operator:
            self.append("", quoted=quoted)
        else:
            self.unresolved(self.text[start : self.at])

    def _is_open_ended(self) -> bool:
        """Return whether the positional arguments may be more than are known."""
        return any(word.holds_more for word in self.scope.arguments)

    def _value_of(self, name: str) -> tuple[Word, ...] | None:
        """Return the value of *name*; what stands before a command counts for assignments only."""
        if name == "#":
            is_open = self._is_open_ended()
            return None if is_open else (Word(text=str(len(self.scope.arguments))),)
        if name.isdigit():
            return self._positional(int(name) if len(name) < 6 else 0)
        if name in self.effects:
            return self.effects[name]
        if self.word.name is not None and name in self.assigned:
            return self.assigned[name]
        return self.scope.get(name)

    def _default(self, text: str, *, quoted: bool, name: str = "") -> None:
        """Add the default *text*; *name*: the variable that nothing sets, so that it is taken."""
        if self.depth >= MAX_DEPTH:
            raise LimitError("defaults are nested too deep")
        assumed = (name,) if name and not name.isdigit() else ()
        for value in self.read_default(text):
            self._value(value._replace(assumed=(*value.assumed, *assumed)), quoted=quoted)

    def _positional(self, number: int) -> tuple[Word, ...] | None:
        """Return argument *number*, unless it is not known which one that is."""
        before = self.scope.arguments[:number]
        is_there = 1 <= number <= len(before) and not any(w.holds_more for w in before[:-1])
        return (before[-1],) if is_there else None

    def _splice(self, words: tuple[Word, ...], *, quoted: bool, is_joined: bool) -> None:
        """Add every one of *words*; in quotes, `$*` is one word."""
        self.num_spliced = len(words)
        for index, word in enumerate(words):
            if index and quoted and is_joined:
                self.append(" ", quoted=True)
            elif index:
                self.end_word()
            self._value(word, quoted=quoted)

    def _value(self, word: Word, *, quoted: bool) -> None:
        """Add the value of a variable; without quotes its blanks separate words."""
        if quoted or self.word.name is not None or not word.text.split():
            pieces = [word.text]
        elif self.scope.get("IFS") is not None:
            self.append(word.text, quoted=True)
            self.word.unresolved.extend((*word.unresolved, word.text))
            return
        else:
            pieces = split_text(word)
            if word.text[0].isspace():
                self.end_word()
        for index, piece in enumerate(pieces):
            if index:
                self.end_word()
            self.append(piece, quoted=bool(piece) or quoted)
            self.word.origin = word.origin or self.word.origin
            self.word.num_values += 1
            self.word.value_length = len(piece)
            self.word.unresolved.extend(word.part(piece).unresolved)
            self.word.is_template |= word.is_template
            if word.assumed:
                self.word.assumed = tuple(dict.fromkeys((*self.word.assumed, *word.assumed)))

    def unresolved(self, reference: str) -> None:
        """Add *reference*, which nothing resolves, as it is written."""
        self.append(reference, quoted=True)
        self.word.unresolved.append(reference)

    def word_text(self) -> str:
        """Return the text of the word being read."""
        return "".join(self.word.text)

    def append(self, text: str, *, quoted: bool = False) -> None:
        """Add *text* to the word; the first plain `=` may make it an assignment."""
        word = self.word
        if text == "=" and not quoted and not word.has_equals and word.is_plain:
            word.has_equals = True
            name = self.word_text().removesuffix("+")
            if name.isidentifier() and name.isascii():
                word.name = name
        self.budget.expand_word(len(text), before=word.length)
        word.length += len(text)
        word.text.append(text)
        if quoted:
            word.is_started, word.is_plain = True, False
        elif text:
            word.is_started = True

    def whole_word(self, text: str) -> Word:
        """Return the word for *text*, in which nothing is quoted and nothing expands."""
        self.budget.expand_word(len(text))
        return Word(text=text, origin=self.word.origin)

    def finish_word(self) -> Word:
        """Return the word that was read, and begin another."""
        building, self.word = self.word, Building(origin=self.origin)
        text = "".join(building.text)
        origin = self.origin if building.is_mixed else building.origin
        if not building.unresolved and "{{" not in text:
            return Word(
                text=text,
                origin=origin,
                is_template=building.is_template,
                assumed=building.assumed,
            )
        found = template_references(text) if "{{" in text else ()
        templates = [name for name in found if name.startswith("{{")]
        return Word(
            text=text,
            origin=origin,
            unresolved=references(text, (*building.unresolved, *templates)),
            is_template=building.is_template or bool(templates),
            assumed=building.assumed,
        )


def _references_in(text: str) -> tuple[str, ...]:
    """Return *text* as one reference if anything in it expands."""
    return (text,) if any(char in text for char in "$`\\\"'") else ()
