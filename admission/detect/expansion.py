"""The words of a shell script: quotes taken off, variables put in.

    characters, variables, arguments -> words

Quoting decides what expands, so text is read character by character (`shlex` drops quotes).
What nothing resolves stays in the word as it was written, and is listed in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from admission.detect.words import Variables, Word, template_references

MAX_WORDS = 10_000
MAX_EXPANDED = 4 << 20
"""Characters of all words together: variables that double themselves end here."""
_MAX_DEPTH = 16

OPEN = "\0open"
"""A key among variables: more come from a place that is not read, so no default is certain."""


class LimitError(Exception):
    """The script is longer than anybody writes by hand."""


@dataclass(slots=True)
class _Building:
    """The word being read."""

    text: list[str] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    is_template: bool = False
    origin: str = ""
    is_started: bool = False
    is_plain: bool = True
    """Only unquoted literal characters so far."""
    name: str | None = None
    """The name, once `NAME=` or `NAME+=` was read in front."""


class WordReader:
    """Reads the words of one text. Used once."""

    def __init__(self, script: Word, *, variables: Variables, arguments: tuple[Word, ...]) -> None:
        self.text = script.text
        self.origin = script.origin
        self.at = 0
        self.variables = dict(variables)
        self.assigned: dict[str, tuple[Word, ...]] = {}
        """Set for the command being read only."""
        self.arguments = arguments
        self.words: list[Word] = []
        self.word = _Building(origin=self.origin)
        self.num_words = 0
        self.num_characters = 0
        self.depth = 0
        """How deep defaults nest."""

    def end_word(self) -> None:
        """Add the word that was read, if one was started."""
        if self.word.is_started:
            self.add_word(self.finish_word())

    def add_word(self, word: Word) -> None:
        """Add *word* to the words of the command."""
        self.num_words += 1
        if self.num_words > MAX_WORDS:
            raise LimitError(f"the script has more than {MAX_WORDS} words")
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
            self.at += 1
            self.append(char)

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
                self.at += 1
                self.append(char, quoted=True)
        self.at += 1

    def _expansion(self, *, quoted: bool) -> None:
        start = self.at
        char = self.text[start]
        following = self.text[start + 1 : start + 2]
        if char == "`":
            end = self.text.find("`", start + 1)
            self.at = end + 1 if end >= 0 else len(self.text)
            self._unresolved(self.text[start : self.at])
        elif following == "(":
            self.at = _closing(self.text, start + 1, "(", ")")
            self._unresolved(self.text[start : self.at])
        elif following == "{":
            self.at = _closing(self.text, start + 1, "{", "}")
            self._parameter(self.text[start + 2 : self.at - 1], start, quoted=quoted)
        elif following in ("@", "*"):
            self.at += 2
            self._splice(self.arguments)
        elif following.isdigit():
            self.at += 2
            self._positional(int(following), start)
        elif following and (following.isalpha() or following == "_"):
            end = start + 1
            while end < len(self.text) and (self.text[end].isalnum() or self.text[end] == "_"):
                end += 1
            self.at = end
            self._parameter(self.text[start + 1 : end], start, quoted=quoted)
        elif following in ("#", "?", "$", "!"):
            self.at += 2
            self._unresolved(self.text[start : self.at])
        else:
            self.at += 1
            self.append("$", quoted=True)

    def _parameter(self, body: str, start: int, *, quoted: bool) -> None:
        """Expand `NAME`, `NAME[@]`, `NAME:-default` and `NAME:=default`; others stay unresolved."""
        end = 0
        while end < len(body) and (body[end].isalnum() or body[end] == "_"):
            end += 1
        name, rest = body[:end], body[end:]
        value = self.assigned.get(name) or self.variables.get(name)
        if not name:
            if body in ("@", "*"):
                self._splice(self.arguments)
                return
            self._unresolved(self.text[start : self.at])
        elif name.isdigit() and not rest:
            self._positional(int(name), start)
        elif rest in ("[@]", "[*]"):
            self._splice(value or ())
        elif value is not None and (not rest or rest[:2] in (":-", ":=") or rest[:1] == "-"):
            if rest[:1] == ":" and len(value) == 1 and value[0].text == "":
                self._default(rest[2:], quoted=quoted)
            else:
                self._value(value[0] if value else Word(text=""), quoted=quoted)
        elif rest[:2] in (":-", ":=") and OPEN not in self.variables:
            self._default(rest[2:], quoted=quoted)
        elif rest[:1] == "-" and OPEN not in self.variables:
            self._default(rest[1:], quoted=quoted)
        elif rest[:2] in (":+",):
            self.append("", quoted=quoted)
        else:
            self._unresolved(self.text[start : self.at])

    def _default(self, text: str, *, quoted: bool) -> None:
        if self.depth >= _MAX_DEPTH:
            raise LimitError("defaults are nested too deep")
        inner = WordReader(
            Word(text=text, origin=self.origin),
            variables=self.variables,
            arguments=self.arguments,
        )
        inner.depth = self.depth + 1
        for value in inner.value():
            self._value(value, quoted=quoted)

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

    def _positional(self, number: int, start: int) -> None:
        if 1 <= number <= len(self.arguments):
            self._value(self.arguments[number - 1], quoted=True)
        else:
            self._unresolved(self.text[start : self.at])

    def _splice(self, words: Iterable[Word]) -> None:
        for index, word in enumerate(words):
            if index:
                self.end_word()
            self._value(word, quoted=True)

    def _value(self, word: Word, *, quoted: bool) -> None:
        """Add the value of a variable; without quotes its blanks separate words."""
        if quoted or self.word.name is not None or word.unresolved or not word.text.split():
            pieces = [word.text]
        else:
            pieces = word.text.split()
            if word.text[0].isspace():
                self.end_word()
        for index, piece in enumerate(pieces):
            if index:
                self.end_word()
            self.append(piece, quoted=bool(piece) or quoted)
            self.word.origin = word.origin or self.word.origin
        self.word.unresolved.extend(word.unresolved)
        self.word.is_template |= word.is_template

    def _unresolved(self, reference: str) -> None:
        self.append(reference, quoted=True)
        self.word.unresolved.append(reference)

    def word_text(self) -> str:
        """Return the text of the word being read."""
        return "".join(self.word.text)

    def append(self, text: str, *, quoted: bool = False) -> None:
        if text == "=" and not quoted and self.word.is_plain and self.word.name is None:
            name = self.word_text().removesuffix("+")
            if name.isidentifier() and name.isascii():
                self.word.name = name
        self.num_characters += len(text)
        if self.num_characters > MAX_EXPANDED:
            raise LimitError(f"the script expands to more than {MAX_EXPANDED} characters")
        self.word.text.append(text)
        self.word.is_started = self.word.is_started or quoted or bool(text)
        self.word.is_plain = self.word.is_plain and not quoted

    def finish_word(self) -> Word:
        building, self.word = self.word, _Building(origin=self.origin)
        text = "".join(building.text)
        templates = [name for name in template_references(text) if name.startswith("{{")]
        return Word(
            text=text,
            origin=building.origin,
            unresolved=(*building.unresolved, *templates),
            is_template=building.is_template or bool(templates),
        )


def _closing(text: str, start: int, opening: str, closing: str) -> int:
    """Return the index after the bracket that closes the one at *start*."""
    depth = 0
    quote = ""
    at = start
    while at < len(text):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == opening:
            depth += 1
        elif char == closing:
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    return len(text)
