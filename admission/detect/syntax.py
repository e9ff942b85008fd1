"""The grammar of a shell script, without what it means.

    characters -> words, operators, blocks

Reads character by character and says what it met; what that does is said in `blocks.py` and
`shell.py`.
"""

from __future__ import annotations

import re
from abc import abstractmethod

from admission.detect import builtins
from admission.detect.expansion import WordReader
from admission.detect.flow import Flow
from admission.detect.heredocs import body_from, next_line, substitution_end, tag_at
from admission.detect.levels import Block, Phase
from admission.detect.pieces import closing
from admission.detect.run import Redirection, Run
from admission.detect.scope import unknown_value
from admission.detect.words import Word

_BLANK = " \t\r"
_BLANKS = re.compile(r"[ \t\r]+(?:\\\n[ \t\r]*)*")
"""With lines that are continued: between words they are blanks, too."""
_NEWLINES = re.compile(r"\n(?:[ \t\r\n]+|#[^\n]*)*")
"""The end of a line, with lines that hold nothing or a comment, and what the next begins with."""
_WORD = re.compile(
    r"([A-Za-z0-9_./:,%@^~+][A-Za-z0-9_./:,%@^~+-]*|-[A-Za-z0-9_./:,%@^~+=-]*|"
    r"\[\[?|\]\]?|==?|[!{}])"
    r"(?:[ \t\r]+(?:\\\n[ \t\r]*)*|(?=[\n;]))"
)
"""A whole word in which nothing is quoted, expands or is assigned, and the blanks after it."""
_OPERATORS = {"&&": "&&", "||": "||", "|&": "|", ";;": ";;", ";&": ";;"}
_REDIRECTIONS = re.compile(r"<<<|<<-|<<|<>|<&-?|>>|>\||>&-?|<|>")
_PAIR = re.compile(r"\([ \t]*\)")
_PATTERN = re.compile(r"\(?(?:[^)'\"\\]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")*\)", re.DOTALL)
_GAP = re.compile(r"(?:\s|#[^\n]*\n)*")


class Syntax(WordReader):
    """Reads one text."""

    def __init__(self, script: Word, run: Run, *, is_sure: bool) -> None:
        super().__init__(script, scope=run.scope, budget=run.budget)
        self.budget.read_again(len(script.text))
        self.run = run
        self.flow = Flow(run.scope, is_level_sure=is_sure)
        self.after_heredocs = 0
        """Where the line after the here-documents of this line begins; 0: there are none."""
        self.redirections: list[Redirection] = []
        """Of the command being read."""
        self.awaited: tuple[str, str] | None = None
        """Operator and stream of a redirection whose target comes next."""
        self.name: str | None = None
        """The first word of the command that is no keyword."""
        self.closed: Block | None = None
        """The block that has just ended: what follows are its redirections."""
        self.defined: tuple[str, int] | None = None
        """Name and text position of a function whose body comes next."""

    @abstractmethod
    def end_command(self, operator: str) -> None:
        """Take in what was read up to *operator*; empty at the end."""

    @abstractmethod
    def take_word(self, word: Word, *, name: str | None, is_plain: bool) -> None:
        """Take in a word that was read; *name* is that of an assignment."""

    @abstractmethod
    def open_block(self, kind: str) -> None:
        """Enter a block."""

    @abstractmethod
    def close_block(self) -> None:
        """Leave the innermost block."""

    def read(self) -> None:
        """Read to the end, or to where nothing runs any more."""
        text, end = self.text, len(self.text)
        while self.at < end:
            while self.at < end:
                if self.flow.is_dead and not self.flow.blocks and self.closed is None:
                    return
                self._step(text[self.at])
            self.end_command("")

    def _step(self, char: str) -> None:
        blocks = self.flow.blocks
        if blocks and blocks[-1].phase is Phase.PATTERN and not self.word.is_started:
            self._pattern(blocks[-1])
        elif not self.word.text and (match := _WORD.match(self.text, self.at)):
            self.at = match.end()
            self.take_word(self.whole_word(match.group(1)), name=None, is_plain=True)
        elif char == "\n":
            newlines = _NEWLINES.match(self.text, self.at) if not self.after_heredocs else None
            self.at = newlines.end() if newlines else max(self.at + 1, self.after_heredocs)
            self.after_heredocs = 0
            self.end_command("\n")
        elif char in _BLANK:
            blanks = _BLANKS.match(self.text, self.at)
            self.at = blanks.end() if blanks else self.at + 1
            self.end_word()
        elif char == "#" and not self.word.is_started:
            end = self.text.find("\n", self.at)
            self.at = end if end >= 0 else len(self.text)
        elif char in "&|<>()" and self.name == "[[":
            self.at += 1
            self.end_word()
        elif char in ";|&":
            self._operator(char)
        elif char in "<>":
            self._redirection(char)
        elif char in "()":
            self._parenthesis(char)
        else:
            self.read_piece(char)

    def _operator(self, char: str) -> None:
        pair = self.text[self.at : self.at + 2]
        if pair == "&>":
            self.at += 1
            self._redirection(">", stream="&")
            return
        operator = pair if pair in _OPERATORS else char
        blanks = _BLANKS.match(self.text, self.at + len(operator))
        self.at = blanks.end() if blanks else self.at + len(operator)
        self.end_command(_OPERATORS.get(operator, operator))
        top = self.flow.top
        if operator in (";;", ";&") and top is not None and top.kind == "case":
            self.at += self.text.startswith("&", self.at)
            self.flow.next_condition(top, Phase.PATTERN)

    def _redirection(self, char: str, *, stream: str = "") -> None:
        """Read `2>`, `<<EOF` with its text; `<( … )` is a word that is not known."""
        if self.word.is_started and self.word.is_plain and self.word_text().isdigit():
            stream = self.finish_word().text
        start = self.at
        self.end_word()
        if self.at != start:
            return
        if self.text.startswith("(", start + 1):
            self.at = substitution_end(self.text, start + 1)
            self.unresolved(self.text[start : self.at])
            return
        match = _REDIRECTIONS.match(self.text, start)
        operator = match.group() if match else char
        if operator in ("<<", "<<-"):
            self._heredoc(start, stream)
            return
        self.at = start + len(operator)
        self.awaited = None if operator.endswith("&-") else (operator, stream)

    def _heredoc(self, start: int, stream: str) -> None:
        tag = tag_at(self.text, start)
        if tag is None:
            self.at = start + len("<<")
            return
        self.at = tag.end
        begin = self.after_heredocs or next_line(self.text, tag.end)
        body = body_from(self.text, begin, tag)
        self.budget.read_again(body.end - begin)
        self.budget.add_word()
        self.after_heredocs = body.end
        word = Word(text=body.text, origin=self.origin)
        if not tag.is_quoted:
            word = self.read_heredoc(body.text)
        self.redirections.append(Redirection(operator="<<", stream=stream, target=word))

    def _parenthesis(self, char: str) -> None:
        is_first = not (self.words or self.assigned or self.word.is_started)
        pair = _PAIR.match(self.text, self.at)
        if char == ")":
            self.at += 1
            self.end_command(")")
            if self.flow.top is not None and self.flow.top.kind == "(":
                self.close_block()
        elif self._awaits_value():
            self.at += 1
            self._array()
        elif self.defined is not None and pair:
            self.at = pair.end()
        elif is_first and self.text.startswith("((", self.at):
            self._arithmetic()
        elif is_first:
            self.at += 1
            self.open_block("(")
        elif pair and not self.assigned and len(self.words) + self.word.is_started == 1:
            self.at = pair.end()
            self.end_word()
            self.defined = (self.words.pop().text, self.at) if self.words else None
            self.name = None
        else:
            start = self.at
            self.at = closing(self.text, start, "(", ")")
            self.unresolved(self.text[start : self.at])

    def _awaits_value(self) -> bool:
        """Return whether the word is `NAME=` or `NAME+=` yet: no longer one is put together."""
        name, length = self.word.name, self.word.length
        if name is None or length > len(name) + len("+="):
            return False
        return self.word_text().removeprefix(name) in ("=", "+=")

    def _arithmetic(self) -> None:
        """Skip `(( … ))`, and note what it may set."""
        start = self.at
        self.at = closing(self.text, start, "(", ")")
        names = builtins.names_set_by(self.text[start : self.at])
        self.effects.update((name, unknown_value(name)) for name in names)
        self.append("((", quoted=True)
        self.end_word()

    def _array(self) -> None:
        """Read `NAME=( … )`: the words up to the closing parenthesis are its value."""
        name = self.word.name or ""
        is_added = self.word_text().endswith("+=")
        outer, self.words = self.words, []
        self.finish_word()
        while self.at < len(self.text) and self.text[self.at] != ")":
            char = self.text[self.at]
            if char.isspace():
                self.at += 1
                WordReader.end_word(self)
            elif char == "#" and not self.word.is_started:
                end = self.text.find("\n", self.at)
                self.at = end if end >= 0 else len(self.text)
            else:
                self.read_piece(char)
        WordReader.end_word(self)
        self.at += 1
        before = (self.scope.get(name) or ()) if is_added else ()
        value = (*before, *self.words)
        self.words = outer
        self.assigned[name] = value

    def _pattern(self, block: Block) -> None:
        """Skip the pattern of a case, or end the case at `esac`."""
        gap = _GAP.match(self.text, self.at)
        self.at = gap.end() if gap else self.at
        match = _PATTERN.match(self.text, self.at)
        if self.text.startswith("esac", self.at):
            self.at += len("esac")
            self.close_block()
        elif match is None:
            self.at = len(self.text)
        else:
            self.at = match.end()
            self.flow.begin(block)
