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
from admission.detect.flow import Block, Flow, Phase
from admission.detect.pieces import closing
from admission.detect.run import Run
from admission.detect.scope import unknown_value
from admission.detect.words import Word

_BLANK = " \t\r"
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
        self.heredocs: list[str] = []
        self.skips_word = False
        """The next word is the target of a redirection."""
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
    def open_block(self, kind: str) -> None:
        """Enter a block."""

    @abstractmethod
    def close_block(self) -> None:
        """Leave the innermost block."""

    def read(self) -> None:
        """Read to the end, or to where nothing runs any more."""
        while self.at < len(self.text):
            while self.at < len(self.text):
                if self.flow.is_dead and not self.flow.blocks and self.closed is None:
                    return
                self._step(self.text[self.at])
            self.end_command("")

    def _step(self, char: str) -> None:
        top = self.flow.top
        if top is not None and top.phase is Phase.PATTERN and not self.word.is_started:
            self._pattern(top)
        elif char == "\n":
            self.at += 1
            self.end_command("\n")
            self._skip_heredocs()
        elif char in _BLANK:
            self.at += 1
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
            self._redirection(">")
            return
        operator = pair if pair in _OPERATORS else char
        self.at += len(operator)
        self.end_command(_OPERATORS.get(operator, operator))
        top = self.flow.top
        if operator in (";;", ";&") and top is not None and top.kind == "case":
            self.at += self.text.startswith("&", self.at)
            self.flow.next_condition(top, Phase.PATTERN)

    def _redirection(self, char: str) -> None:
        """Skip `2>file`, `<<EOF` and their targets; `<( … )` is a word that is not known."""
        if self.word.is_started and self.word.is_plain and self.word_text().isdigit():
            self.finish_word()
        start = self.at
        self.end_word()
        if self.at != start:
            return
        if self.text.startswith("(", start + 1):
            self.at = closing(self.text, start + 1, "(", ")")
            self.unresolved(self.text[start : self.at])
            return
        match = _REDIRECTIONS.match(self.text, start)
        operator = match.group() if match else char
        self.at = start + len(operator)
        if operator in ("<<", "<<-"):
            self._heredoc()
        else:
            self.skips_word = not operator.endswith("&-")

    def _heredoc(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _BLANK:
            self.at += 1
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in " \t\r\n;|&<>()":
            self.at += 1
        self.heredocs.append(self.text[start : self.at].strip("'\"\\"))

    def _skip_heredocs(self) -> None:
        for delimiter in self.heredocs:
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = end if end >= 0 else len(self.text)
                line = self.text[self.at : end]
                self.at = end + 1
                if line.strip() == delimiter:
                    break
        self.heredocs = []

    def _parenthesis(self, char: str) -> None:
        is_first = not (self.words or self.assigned or self.word.is_started)
        pair = _PAIR.match(self.text, self.at)
        if char == ")":
            self.at += 1
            self.end_command(")")
            if self.flow.top is not None and self.flow.top.kind == "(":
                self.close_block()
        elif self.word.name is not None and not self.word_text().partition("=")[2]:
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
            self.flow.begin(block, is_decided=False)
