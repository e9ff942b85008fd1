"""The words of a shell script: quotes taken off, variables put in.

    characters, variables, arguments -> words

Quoting decides what expands, so text is read character by character (`shlex` drops quotes).
What nothing resolves stays in the word as it was written, and is listed in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from admission.detect.budget import MAX_VALUE, Budget, LimitError
from admission.detect.builtins import names_set_by
from admission.detect.pieces import Building, closing, is_open
from admission.detect.scope import Scope, unknown_value
from admission.detect.words import Word, references, template_references

_MAX_DEPTH = 16
_PLAIN = re.compile(r"[A-Za-z0-9_./:,%@^~-]+")
"""Characters that mean nothing to a shell wherever they stand."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


class WordReader:
    """Reads the words of one text. Used once."""

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

    def end_word(self) -> None:
        """Add the word that was read, if one was started."""
        if self.word.is_started:
            self.add_word(self.finish_word())

    def add_word(self, word: Word) -> None:
        """Add *word* to the words of the command."""
        self.budget.add_word()
        self.words.append(word)

    def read_piece(self, char: str) -> None:
        """Read one piece of a word: a quoted string, an expansion or a character."""
        if char == "\\":
            following = self.text[self.at + 1 : self.at + 2]
            self.at += 2
            if following not in ("", "\n"):
                self.append(following, quoted=True)
        elif char == "'":
            end = self.text.find("'", self.at + 1)
            end = end if end >= 0 else len(self.text)
            self.append(self.text[self.at + 1 : end], quoted=True)
            self.at = end + 1
        elif char == '"':
            self._double_quotes()
        elif char in "$`":
            self._expansion(quoted=False)
        else:
            plain = _PLAIN.match(self.text, self.at)
            text = plain.group() if plain else char
            self.at += len(text)
            self.append(text)

    def _double_quotes(self) -> None:
        self.at += 1
        self.append("", quoted=True)
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                if self.text[self.at + 1] != "\n":
                    self.append(self.text[self.at + 1], quoted=True)
                self.at += 2
            elif char in "$`":
                self._expansion(quoted=True)
            else:
                plain = _PLAIN.match(self.text, self.at)
                text = plain.group() if plain else char
                self.at += len(text)
                self.append(text, quoted=True)
        self.at += 1

    def _expansion(self, *, quoted: bool) -> None:
        start = self.at
        char = self.text[start]
        following = self.text[start + 1 : start + 2]
        if char == "`":
            end = self.text.find("`", start + 1)
            self.at = end + 1 if end >= 0 else len(self.text)
            self.unresolved(self.text[start : self.at])
        elif following == "(":
            self.at = closing(self.text, start + 1, "(", ")")
            text = self.text[start : self.at]
            if text.startswith("$(("):
                self.effects.update((name, unknown_value(name)) for name in names_set_by(text))
            self.unresolved(text)
        elif following == "'" and not quoted:
            self._ansi_quotes()
        elif following == '"' and not quoted:
            self.at += 1
            self._double_quotes()
        elif following == "{":
            self.at = closing(self.text, start + 1, "{", "}")
            self._parameter(self.text[start + 2 : self.at - 1], start, quoted=quoted)
        elif following in ("@", "*"):
            self.at += 2
            self._splice(self.scope.arguments, quoted=quoted, is_joined=following == "*")
        elif following.isdigit():
            self.at += 2
            self._positional(int(following), start, quoted=quoted)
        elif name := _NAME.match(self.text, start + 1):
            self.at = name.end()
            self._parameter(name.group(), start, quoted=quoted)
        elif following in ("#", "?", "$", "!"):
            self.at += 2
            self.unresolved(self.text[start : self.at])
        else:
            self.at += 1
            self.append("$", quoted=True)

    def _ansi_quotes(self) -> None:
        """Read `$'…'`."""
        at = self.at + 2
        parts: list[str] = []
        while at < len(self.text) and self.text[at] != "'":
            if self.text[at] == "\\":
                following = self.text[at + 1 : at + 2]
                parts.append(_ESCAPES.get(following, f"\\{following}"))
                at += 2
            else:
                parts.append(self.text[at])
                at += 1
        self.at = at + 1
        self.append("".join(parts), quoted=True)

    def _parameter(self, body: str, start: int, *, quoted: bool) -> None:
        """Expand `NAME`, `NAME[@]` and the forms with `-`, `=` and `+`; others stay unresolved."""
        match = _NAME.match(body)
        name = match.group() if match else ""
        rest = body[len(name) :]
        if not name and body in ("@", "*"):
            self._splice(self.scope.arguments, quoted=quoted, is_joined=body == "*")
        elif name.isdigit() and not rest:
            self._positional(int(name) if len(name) < 6 else 0, start, quoted=quoted)
        elif not name or name.isdigit():
            self.unresolved(self.text[start : self.at])
        elif rest in ("[@]", "[*]"):
            value = self._value_of(name) or ()
            self._splice(value, quoted=quoted, is_joined=rest == "[*]")
        else:
            self._variable(name, rest, start, quoted=quoted)

    def _variable(self, name: str, rest: str, start: int, *, quoted: bool) -> None:
        value = self._value_of(name)
        operator = rest[:2] if rest[:1] == ":" else rest[:1]
        text = rest[len(operator) :]
        is_empty = value is not None and len(value) == 1 and value[0].text == ""
        is_missing = (value is None and not self.scope.is_open) or (
            is_empty and operator[:1] == ":"
        )
        if operator in ("-", ":-", "=", ":=") and is_missing:
            self._default(text, quoted=quoted)
            if operator[-1] == "=":
                self.effects[name] = (Word(text=text, unresolved=_references_in(text)),)
        elif operator in ("+", ":+") and value is not None and not is_open(value):
            if not is_missing:
                self._default(text, quoted=quoted)
        elif value is not None and operator in ("", "-", ":-", "=", ":="):
            self._value(value[0] if value else Word(text=""), quoted=quoted)
        else:
            self.unresolved(self.text[start : self.at])

    def _value_of(self, name: str) -> tuple[Word, ...] | None:
        """Return the value of *name*; what stands before a command counts for assignments only."""
        if name in self.effects:
            return self.effects[name]
        if self.word.name is not None and name in self.assigned:
            return self.assigned[name]
        return self.scope.get(name)

    def _default(self, text: str, *, quoted: bool) -> None:
        if self.depth >= _MAX_DEPTH:
            raise LimitError("defaults are nested too deep")
        inner = WordReader(
            Word(text=text, origin=self.origin), scope=self.scope, budget=self.budget
        )
        inner.depth = self.depth + 1
        for value in inner.value():
            self._value(value, quoted=quoted)
        self.effects.update(inner.effects)

    def value(self) -> tuple[Word, ...]:
        """Return the whole text as one word: the default of an expansion."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "\\'\"$`":
                self.read_piece(char)
            else:
                self.at += 1
                self.append(char, quoted=True)
        return (*self.words, self.finish_word())

    def _positional(self, number: int, start: int, *, quoted: bool) -> None:
        arguments = self.scope.arguments
        if 1 <= number <= len(arguments):
            self._value(arguments[number - 1], quoted=quoted)
        else:
            self.unresolved(self.text[start : self.at])

    def _splice(self, words: Iterable[Word], *, quoted: bool, is_joined: bool) -> None:
        """Add every one of *words*; in quotes, `$*` is one word."""
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
            pieces = [word.text] if word.unresolved else word.text.split()
            if word.text[0].isspace():
                self.end_word()
        for index, piece in enumerate(pieces):
            if index:
                self.end_word()
            self.append(piece, quoted=bool(piece) or quoted)
            self.word.origin = word.origin or self.word.origin
        self.word.unresolved.extend(word.unresolved)
        self.word.is_template |= word.is_template

    def unresolved(self, reference: str) -> None:
        """Add *reference*, which nothing resolves, as it is written."""
        self.append(reference, quoted=True)
        self.word.unresolved.append(reference)

    def word_text(self) -> str:
        """Return the text of the word being read."""
        return "".join(self.word.text)

    def append(self, text: str, *, quoted: bool = False) -> None:
        """Add *text* to the word; the first plain `=` may make it an assignment."""
        if text == "=" and not quoted and not self.word.has_equals and self.word.is_plain:
            self.word.has_equals = True
            name = self.word_text().removesuffix("+")
            if name.isidentifier() and name.isascii():
                self.word.name = name
        self.budget.expand(len(text))
        self.word.length += len(text)
        if self.word.length > MAX_VALUE:
            raise LimitError(f"a word expands to more than {MAX_VALUE} characters")
        self.word.text.append(text)
        self.word.is_started = self.word.is_started or quoted or bool(text)
        self.word.is_plain = self.word.is_plain and not quoted

    def finish_word(self) -> Word:
        building, self.word = self.word, Building(origin=self.origin)
        text = "".join(building.text)
        templates = [name for name in template_references(text) if name.startswith("{{")]
        return Word(
            text=text,
            origin=building.origin,
            unresolved=references(text, (*building.unresolved, *templates)),
            is_template=building.is_template or bool(templates),
        )


def _references_in(text: str) -> tuple[str, ...]:
    """Return *text* as one reference if anything in it expands."""
    return (text,) if any(char in text for char in "$`\\\"'") else ()
