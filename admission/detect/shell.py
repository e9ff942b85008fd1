"""A shell script as the simple commands in it, expanded as far as the object tells.

    script, variables, arguments -> commands

Nothing is run: command substitutions, globs and arithmetic stay unresolved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from admission.detect.expansion import LimitError, WordReader
from admission.detect.words import Variables, Word

MAX_SCRIPT = 256 << 10
MAX_COMMANDS = 2_000
MAX_VARIABLES = 500

_OPENING = frozenset({"if", "while", "until", "case", "select"})
_CLOSING = frozenset({"fi", "done", "esac"})
_SKIPPED = frozenset({"then", "else", "elif", "do", "{", "}", "!", "time", "coproc"})
_KEYWORDS = _OPENING | _SKIPPED
_DECLARING = frozenset({"export", "declare", "readonly", "local", "typeset"})
_TESTS = frozenset({"[", "[[", "test"})
_BLANK = " \t\r"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One simple command and what was set when it runs."""

    words: tuple[Word, ...]
    variables: Variables
    directory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The commands of a script, in order. `problem` says why reading ended early."""

    commands: tuple[Command, ...] = ()
    problem: str | None = None
    written: tuple[str, ...] = ()
    """Files that output is redirected to."""


def read_script(
    script: Word, *, variables: Variables, arguments: tuple[Word, ...] = (), directory: str = ""
) -> Script:
    """Return the commands of *script*, run with *variables* and positional *arguments*.

    A variable set under a condition is unresolved afterwards: which branch runs is not known.
    """
    if len(script.text) > MAX_SCRIPT:
        return Script(problem=f"the script is longer than {MAX_SCRIPT} bytes")
    reader = _Reader(script, variables=variables, arguments=arguments, directory=directory)
    try:
        reader.read()
    except LimitError as error:
        return Script(commands=tuple(reader.commands), problem=str(error))
    return Script(commands=tuple(reader.commands), written=tuple(reader.written))


class _Reader(WordReader):
    """Reads the commands of one script. Used once."""

    def __init__(
        self, script: Word, *, variables: Variables, arguments: tuple[Word, ...], directory: str
    ) -> None:
        super().__init__(script, variables=variables, arguments=arguments)
        self.directory = directory
        self.commands: list[Command] = []
        self.written: list[str] = []
        self.heredocs: list[str] = []
        self.skips_word = False
        """The next word is the target of a redirection."""
        self.conditions = 0
        """How deep `if`, `for` and the like nest."""
        self.after_test = False
        self.name: str | None = None
        """The first word of the command that is no keyword."""
        self.num_statements = 0
        self.num_variables = 0
        self.is_shared = False
        """A command holds the variables as they are now."""

    def read(self) -> None:
        """Read to the end."""
        while self.at < len(self.text):
            self._step(self.text[self.at])
        self._end_command()

    def _step(self, char: str) -> None:
        if char == "\n":
            self.at += 1
            self._end_command()
            self._skip_heredocs()
        elif char in _BLANK:
            self.at += 1
            self.end_word()
        elif char == "#" and not self.word.is_started:
            end = self.text.find("\n", self.at)
            self.at = end if end >= 0 else len(self.text)
        elif char in ";|&":
            self._operator(char)
        elif char in "<>":
            self._redirection()
        elif char in "()":
            self._parenthesis(char)
        else:
            self.read_piece(char)

    def _operator(self, char: str) -> None:
        if char == "&" and self.text[self.at + 1 : self.at + 2] == ">":
            self.at += 1
            self._redirection()
            return
        is_and_or = self.text[self.at : self.at + 2] in ("&&", "||")
        self.at += 2 if is_and_or else 1
        first = self.words[0].text if self.words else self.word_text()
        self._end_command()
        self.after_test = is_and_or and first in _TESTS

    def _redirection(self) -> None:
        """Skip `2>file`, `<<EOF` and their targets."""
        if self.word.is_started and self.word.is_plain and self.word_text().isdigit():
            self.finish_word()
        self.end_word()
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in "<>&|-":
            self.at += 1
        operator = self.text[start : self.at]
        if operator.startswith("<<") and not operator.startswith("<<<"):
            self._heredoc()
        elif self.text[self.at : self.at + 1] != "(":
            self.skips_word = True

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
        self.at += 1
        if char == "(" and self.word.name is not None and not self._value_text():
            self._array()
        else:
            self._end_command()

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
                self.end_word()
            elif char == "#" and not self.word.is_started:
                end = self.text.find("\n", self.at)
                self.at = end if end >= 0 else len(self.text)
            else:
                self.read_piece(char)
        self.end_word()
        self.at += 1
        before = self.variables.get(name, ()) if is_added else ()
        value = (*before, *self.words)
        self.words = outer
        self._assign(name, value, lasting=not self.words)

    def _value_text(self) -> str:
        return self.word_text().partition("=")[2]

    def end_word(self) -> None:
        """Add the word that was read: to the command, or as an assignment or redirection."""
        if not self.word.is_started:
            return
        name = self.word.name
        word = self.finish_word()
        is_declared = self.name in _DECLARING
        if self.skips_word:
            self.skips_word = False
            self.written.append(word.text)
        elif name is not None and (self.name is None or is_declared):
            self._assign(name, (self._added(name, word),), lasting=is_declared)
        else:
            if self.name is None and word.text not in _KEYWORDS:
                self.name = word.text
            self.add_word(word)

    def _added(self, name: str, word: Word) -> Word:
        """Return the value of `NAME=value` or `NAME+=value`."""
        head, _, value = word.text.partition("=")
        old = self.variables.get(name, ()) if head.endswith("+") else ()
        kept = tuple(item for part in old for item in part.unresolved)
        joined = "".join(part.text for part in old) + value
        return replace(word.part(value), text=joined, unresolved=(*kept, *word.unresolved))

    def _assign(self, name: str, value: tuple[Word, ...], *, lasting: bool) -> None:
        if lasting:
            self._keep(name, value)
        else:
            self.assigned[name] = value

    def _keep(self, name: str, value: tuple[Word, ...]) -> None:
        """Set a variable for good, or as unresolved if it depends on a condition."""
        before = self.variables.get(name)
        if (self.conditions or self.after_test) and before != value:
            reference = f"${{{name}}}"
            value = (Word(text=reference, origin=self.origin, unresolved=(reference,)),)
        if self.is_shared:
            self.variables, self.is_shared = dict(self.variables), False
        self.num_variables += name not in self.variables
        if self.num_variables > MAX_VARIABLES:
            raise LimitError(f"the script sets more than {MAX_VARIABLES} variables")
        self.variables[name] = value

    def _end_command(self) -> None:
        self.end_word()
        self.skips_word = False
        words, assigned = self.words, self.assigned
        self.words, self.assigned, self.name = [], {}, None
        if words or assigned:
            self.num_statements += 1
            if self.num_statements > MAX_COMMANDS:
                raise LimitError(f"the script has more than {MAX_COMMANDS} commands")
            self._statement(words, assigned)
        self.after_test = False

    def _statement(self, words: list[Word], assigned: Variables) -> None:
        """Take in one statement: a command, or assignments alone."""
        start = self._skip_keywords(words)
        if words[start:]:
            self._command(tuple(words[start:]), assigned)
        else:
            for name, value in assigned.items():
                self._keep(name, value)

    def _skip_keywords(self, words: list[Word]) -> int:
        """Return where the command starts after shell keywords; follow how conditions nest."""
        for index, word in enumerate(words):
            if word.text in _OPENING:
                self.conditions += 1
            elif word.text in _CLOSING:
                self.conditions = max(0, self.conditions - 1)
                return len(words)
            elif word.text == "for":
                self.conditions += 1
                for variable in words[index + 1 : index + 2]:
                    self._keep(variable.text, ())
                return len(words)
            elif word.text not in _SKIPPED:
                return index
        return len(words)

    def _command(self, words: tuple[Word, ...], assigned: Variables) -> None:
        first = words[0].text
        if first in _DECLARING:
            return
        if first == "unset":
            self.variables = {
                name: value
                for name, value in self.variables.items()
                if name not in {word.text for word in words[1:]}
            }
            self.is_shared = False
        elif first == "cd" and len(words) > 1:
            self.directory = _joined(self.directory, words[-1].text)
        elif first == "set" and len(words) > 1 and words[1].text == "--":
            self.arguments = words[2:]
        else:
            self.is_shared = self.is_shared or not assigned
            self.commands.append(
                Command(
                    words=words,
                    variables={**self.variables, **assigned} if assigned else self.variables,
                    directory=self.directory,
                )
            )


def _joined(directory: str, path: str) -> str:
    return path if path.startswith("/") or not directory else f"{directory.rstrip('/')}/{path}"
