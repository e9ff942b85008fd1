"""The words of a shell script: quotes taken off, variables put in.

    characters, variables, arguments -> words

Quoting decides what expands, so text is read character by character (`shlex` drops quotes).
What nothing resolves stays in the word as it was written, and is listed in it.
"""

from __future__ import annotations

import re

from admission.detect.arithmetic import number_of
from admission.detect.builtins import names_set_by
from admission.detect.heredocs import substitution_end
from admission.detect.parameters import Parameters
from admission.detect.pieces import closing
from admission.detect.scope import unknown_value
from admission.detect.words import Word

_PLAIN = re.compile(r"[A-Za-z0-9_./:,%@^~-]+")
"""Characters that mean nothing to a shell wherever they stand."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+")
_ALL_ITEMS = re.compile(r"\$\{[A-Za-z_]\w*\[@\]\}\"")
_QUOTED = re.compile(r"\"([^\\$`\"]*)\"")
_IN_QUOTES = re.compile(r"[^\\$`\"]+")
_LITERAL = re.compile(r"[^\\$`]+")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


class WordReader(Parameters):
    """Reads the words of one text. Used once."""

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
        if plain := _QUOTED.match(self.text, self.at):
            self.at = plain.end()
            self.append(plain.group(1), quoted=True)
            return
        self.at += 1
        was_started, was_plain = self.word.is_started, self.word.is_plain
        length = self.word.length
        is_nothing = self.text.startswith(('$@"', '${@}"'), self.at) or _ALL_ITEMS.match(
            self.text, self.at
        )
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
                plain = _IN_QUOTES.match(self.text, self.at)
                text = plain.group() if plain else char
                self.at += len(text)
                self.append(text, quoted=True)
        self.at += 1
        if is_nothing and not self.num_spliced and self.word.length == length:
            self.word.is_started, self.word.is_plain = was_started, was_plain

    def _expansion(self, *, quoted: bool) -> None:
        start = self.at
        char = self.text[start]
        following = self.text[start + 1 : start + 2]
        if char == "`":
            end = self.text.find("`", start + 1)
            self.at = end + 1 if end >= 0 else len(self.text)
            self._substitution(self.text[start + 1 : self.at - 1], start, quoted=quoted)
        elif self.text.startswith("((", start + 1):
            self.at = closing(self.text, start + 1, "(", ")")
            self._arithmetic_value(self.text[start : self.at])
        elif following == "(":
            self.at = substitution_end(self.text, start + 1)
            self._substitution(self.text[start + 2 : self.at - 1], start, quoted=quoted)
        elif following == "'" and not quoted:
            self._ansi_quotes()
        elif following == '"' and not quoted:
            self.at += 1
            self._double_quotes()
        elif following == "{":
            quotes = '"' if quoted else "'\""
            self.at = closing(self.text, start + 1, "{", "}", quotes=quotes)
            self._parameter(self.text[start + 2 : self.at - 1], start, quoted=quoted)
        elif following in ("@", "*"):
            self.at += 2
            self._splice(self.scope.arguments, quoted=quoted, is_joined=following == "*")
        elif following.isdigit() or following == "#":
            self.at += 2
            self._parameter(following, start, quoted=quoted)
        elif name := _NAME.match(self.text, start + 1):
            self.at = name.end()
            self._parameter(name.group(), start, quoted=quoted)
        elif following in ("?", "$", "!", "-"):
            self.at += 2
            self.unresolved(self.text[start : self.at])
        else:
            self.at += 1
            self.append("$", quoted=True)

    def output_of(self, _script: str) -> Word | None:
        """Return what the commands of `$(…)` print, or None where that is not known."""
        return None

    def _substitution(self, script: str, start: int, *, quoted: bool) -> None:
        output = self.output_of(script)
        if output is None:
            self.unresolved(self.text[start : self.at])
        else:
            self._value(output._replace(text=output.text.rstrip("\n")), quoted=quoted)

    def _arithmetic_value(self, text: str) -> None:
        """Expand `$(( … ))`: a number, if everything in it is one."""
        changed = names_set_by(text)
        number = None if changed else number_of(text[3:-2], self._number_of)
        self.effects.update((name, unknown_value(name)) for name in changed)
        if number is None:
            self.unresolved(text)
        else:
            self.append(str(number), quoted=True)

    def _number_of(self, name: str) -> str | None:
        value = self._value_of(name)
        return value[0].text if value and value[0].is_known else None

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

    def heredoc(self) -> Word:
        """Return the whole text as a here-document: only `$`, backticks and `\\` mean anything."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                is_kept = following not in ("$", "`", "\\", "\n") or not following
                self.append(
                    char if is_kept else "" if following == "\n" else following, quoted=True
                )
                self.at += 1 if is_kept else 2
            elif char in "$`":
                self._expansion(quoted=True)
            else:
                plain = _LITERAL.match(self.text, self.at)
                text = plain.group() if plain else char
                self.at += len(text)
                self.append(text, quoted=True)
        return self.finish_word()

    def read_default(self, text: str) -> tuple[Word, ...]:
        """Return the words of the default in `${NAME:-default}`."""
        inner = self._inner(text)
        found = inner.value()
        self.effects.update(inner.effects)
        return found

    def read_heredoc(self, text: str) -> Word:
        """Return the here-document *text* with what is expanded in one."""
        inner = self._inner(text)
        found = inner.heredoc()
        self.effects.update(inner.effects)
        return found

    def _inner(self, text: str) -> WordReader:
        return _Inner(text, self)

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


class _Inner(WordReader):
    """Reads a text inside another: a default, a here-document."""

    def __init__(self, text: str, outer: WordReader) -> None:
        super().__init__(
            Word(text=text, origin=outer.origin), scope=outer.scope, budget=outer.budget
        )
        self.outer = outer
        self.depth = outer.depth + 1

    def output_of(self, script: str) -> Word | None:
        """Return what *script* prints, as the text around this one knows it."""
        return self.outer.output_of(script)
