"""A shell script as the simple commands in it, expanded as far as the object tells.

    script, variables, arguments -> commands

Nothing is run: command substitutions, globs and arithmetic stay unresolved, and what they may
have set is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from admission.detect import builtins
from admission.detect.blocks import Blocks
from admission.detect.budget import Budget, LimitError
from admission.detect.run import Command, Run
from admission.detect.scope import Scope, State
from admission.detect.words import Variables, Word

__all__ = ["Command", "Script", "read_script"]

MAX_CALLS = 8
"""How deep functions and `eval` nest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The commands of a script, in order. `problem` says why reading ended early."""

    commands: tuple[Command, ...] = ()
    problem: str | None = None
    written: tuple[str, ...] = ()
    """Files that output is redirected to."""


class Exit(Enum):
    """How a text may end before its last command."""

    RETURN = auto()
    SUCCESS = auto()
    FAILURE = auto()
    """The job fails if this runs, so what follows is asked for all the same."""


def read_script(
    script: Word,
    *,
    variables: Variables,
    budget: Budget,
    arguments: tuple[Word, ...] = (),
    directory: str = "",
    is_sure: bool = True,
) -> Script:
    """Return the commands of *script*, run with *variables* and positional *arguments*.

    A variable set under a condition is unresolved afterwards: which branch runs is not known.
    """
    run = Run(
        scope=Scope(variables, arguments=arguments, directory=directory),
        budget=budget,
        commands=[],
        written=[],
        functions={},
    )
    problem = None
    try:
        budget.read_script(len(script.text))
        _Reader(script, run, is_sure=is_sure).read()
    except LimitError as error:
        problem = str(error)
    return Script(commands=tuple(run.commands), problem=problem, written=tuple(run.written))


class _Reader(Blocks):
    """Reads the commands of one text. Used once."""

    def __init__(self, script: Word, run: Run, *, is_sure: bool, depth: int = 0) -> None:
        if depth > MAX_CALLS:
            raise LimitError("functions call each other too deep")
        super().__init__(script, run, is_sure=is_sure)
        self.num_calls = depth
        self.locals: set[str] = set()
        self.exit: Exit | None = None
        """How the text may have ended before its end."""

    def take_statement(
        self, words: tuple[Word, ...], assigned: Variables, *, is_alone: bool
    ) -> None:
        """Take in one statement; what one in a shell of its own sets does not leave it."""
        before = self.scope.state()
        self.apply_effects()
        if words:
            self._command(words, assigned, is_alone=is_alone)
        else:
            for name, value in assigned.items():
                self.scope.set(name, value)
        if is_alone:
            self.scope.restore(before)

    def _command(self, words: tuple[Word, ...], assigned: Variables, *, is_alone: bool) -> None:
        while words[0].text in ("command", "builtin") and len(words) > 1:
            if words[1].text.startswith("-"):
                break
            words = words[1:]
        name = words[0].text
        element = builtins.element_set_by(words[0])
        if element is not None and len(words) == 1:
            self.scope.doubt((element,))
        elif name in self.run.functions and words[0].is_known:
            self._call(self.run.functions[name], words, assigned, is_alone=is_alone)
        elif name == "eval":
            self._evaluate(words[1:], is_alone=is_alone)
        elif name in ("exit", "return"):
            if not is_alone:
                self._end(Exit.RETURN if name == "return" else _status(words))
        elif name in ("break", "continue"):
            self.flow.leave_loop()
        else:
            self._plain_command(words, assigned, is_alone=is_alone)

    def _plain_command(
        self, words: tuple[Word, ...], assigned: Variables, *, is_alone: bool
    ) -> None:
        name = words[0].text
        if name in builtins.DECLARING:
            for variable, value in assigned.items():
                self.scope.set(variable, value)
            if builtins.changes_values(words):
                self.scope.doubt(assigned)
            if name in builtins.LOCAL:
                self.locals.update((*assigned, *(word.text for word in words[1:])))
        builtins.apply(words, self.scope)
        if name in builtins.SILENT:
            return
        variables: Variables = self.scope.state()
        self.run.commands.append(
            Command(
                words=words,
                variables=State(variables, dict(assigned)) if assigned else variables,
                directory=self.scope.directory,
                is_sure=self.flow.is_sure,
            )
        )
        if is_alone:
            return
        if name == "exec" and any(not word.text.startswith("-") for word in words[1:]):
            self._end(Exit.SUCCESS)
        elif _waits_forever(words):
            self.flow.doubt_rest()

    def _end(self, how: Exit) -> None:
        """Note that the text, or the whole script, ends here if this runs."""
        if self.exit is None or self.exit is Exit.FAILURE:
            self.exit = how
        self.flow.end(is_failure=how is Exit.FAILURE)

    def _call(
        self, body: str, words: tuple[Word, ...], assigned: Variables, *, is_alone: bool
    ) -> None:
        """Read the *body* of a function as often as it is called."""
        if self.num_dry:
            return
        before = self.scope.state()
        for name, value in assigned.items():
            self.scope.set(name, value)
        self.scope.arguments = words[1:]
        inner = self._read_inner(Word(text=body, origin=self.origin), is_alone=is_alone)
        self.scope.arguments = before.arguments
        for name in (*assigned, *inner.locals):
            self.scope.set(name, before.get(name))

    def _evaluate(self, words: tuple[Word, ...], *, is_alone: bool) -> None:
        """Read the text that `eval` is given; if it is not known, neither is anything after it."""
        text = " ".join(word.text for word in words)
        is_known = all(word.is_known for word in words)
        if not is_known and text.startswith(builtins.HARMLESS_SUBSTITUTIONS):
            return
        origin = words[0].origin if words else self.origin
        self._read_inner(Word(text=text, origin=origin), is_alone=is_alone)
        if not is_known:
            self.scope.forget()

    def _read_inner(self, text: Word, *, is_alone: bool) -> _Reader:
        inner = _Reader(text, self.run, is_sure=self.flow.is_sure, depth=self.num_calls + 1)
        inner.read()
        if inner.exit in (Exit.SUCCESS, Exit.FAILURE) and not is_alone:
            if inner.flow.is_dead:
                self._end(inner.exit)
            elif inner.exit is Exit.SUCCESS:
                self.exit = Exit.SUCCESS
                self.flow.doubt_rest()
        return inner


def _status(words: tuple[Word, ...]) -> Exit:
    text = words[1].text if len(words) > 1 and words[1].is_known else "0"
    return Exit.FAILURE if text.isdigit() and text.strip("0") else Exit.SUCCESS


def _waits_forever(words: tuple[Word, ...]) -> bool:
    texts = [word.text for word in words]
    return (texts[0] == "sleep" and texts[1:2] in (["infinity"], ["inf"])) or (
        texts[0] == "tail" and ("-f" in texts or "-F" in texts)
    )
