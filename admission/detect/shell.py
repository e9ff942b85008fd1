"""A shell script as the simple commands in it, expanded as far as the object tells.

    script, variables, arguments -> commands

Nothing is run: command substitutions, globs and arithmetic stay unresolved, and what they may
have set is unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from admission.detect import builtins, deeds
from admission.detect.blocks import Blocks
from admission.detect.budget import MAX_VALUE, Budget, LimitError
from admission.detect.exits import Exit, status_of, waits_forever
from admission.detect.files import Files
from admission.detect.idle_calls import starts_program
from admission.detect.levels import Block
from admission.detect.output import MAX_OUTPUT, joined
from admission.detect.run import Command, Redirection, Run, Statement
from admission.detect.scope import Scope, State
from admission.detect.words import Variables, Word

__all__ = ["Command", "Script", "read_script"]

_SPEAKING = re.compile(r"(?:echo|printf|cat|envsubst)\s|<\s*[^(<]")
"""What `$( … )` may begin with, to be worth reading."""
_STARTING = re.compile(r"python|run|launch|deepspeed|accelerate|train|axolotl|tune|yolo|\.sh\b")
"""What is in one that may start a program."""
_SILENT = Word(text="")
"""What a command prints that prints nothing."""
MAX_CALLS = 8
"""How deep functions and `eval` nest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The commands of a script, in order. `problem` says why reading ended early."""

    commands: tuple[Command, ...] = ()
    problem: str | None = None


def read_script(
    script: Word,
    *,
    variables: Variables,
    budget: Budget,
    arguments: tuple[Word, ...] = (),
    directory: str = "",
    is_sure: bool = True,
    files: Files | None = None,
    is_bash: bool = True,
) -> Script:
    """Return the commands of *script*, run with *variables* and positional *arguments*.

    Files that it reads are taken from *files*, and those it writes are put there.
    A variable set under a condition is unresolved afterwards: which branch runs is not known.
    """
    run = Run(
        scope=Scope(variables, arguments=arguments, directory=directory),
        budget=budget,
        commands=[],
        files=files or Files(),
        functions={},
        is_bash=is_bash,
    )
    problem = None
    try:
        budget.read_script(len(script.text))
        _Reader(script, run, is_sure=is_sure).read()
    except LimitError as error:
        problem = str(error)
    return Script(commands=tuple(run.commands), problem=problem)


class _Reader(Blocks):
    """Reads the commands of one text. Used once."""

    def __init__(self, script: Word, run: Run, *, is_sure: bool, depth: int = 0) -> None:
        if depth > MAX_CALLS:
            raise LimitError("functions call each other too deep")
        super().__init__(script, run, is_sure=is_sure)
        self.num_calls = depth
        self.locals: set[str] = set()
        self.piped: Word | None = None
        """What the command before this one in its pipeline prints."""
        self.exit: Exit | None = None
        """How the text may have ended before its end."""

    def take_statement(self, statement: Statement) -> None:
        """Take in one statement; what one in a shell of its own sets does not leave it."""
        before = self.scope.state() if statement.is_alone else None
        self.apply_effects()
        given = deeds.given_to(statement, self.piped, self.run.files, self.scope.directory)
        printed = len(self.run.printed)
        if statement.words:
            self._command(statement, given)
        else:
            for name, value in statement.assigned.items():
                self.scope.set(name, value)
        self._take_output(statement, given, num_before=printed)
        if before is not None:
            self.scope.restore(before)

    def _take_output(self, statement: Statement, given: Word | None, *, num_before: int) -> None:
        """Follow what the statement prints: to files, to the next command, or out."""
        run = self.run
        if self.num_dry:
            return
        output: Word | None = _SILENT
        if statement.words:
            output = deeds.output_of(statement.words, given, run.files, self.scope)
            if not run.is_bash and deeds.depends_on_shell(statement.words):
                output = None
            self.budget.expand(len(output.text) if output is not None else 0)
        is_taken = self._write(statement, output)
        self.piped = output if statement.writes_pipe and not is_taken else None
        del run.printed[num_before:]
        if is_taken or statement.writes_pipe:
            return
        is_known = self.flow.is_sure and not statement.is_repeated
        run.printed.append(output if is_known or output == _SILENT else None)

    def redirect_block(
        self, block: Block, redirections: tuple[Redirection, ...], *, writes_pipe: bool
    ) -> None:
        """Follow what a block printed: to files, to the next command, or out."""
        printed = self.run.printed[block.num_printed :]
        output = _all_of(printed) if block.kind in ("{", "(", "if") else None
        statement = Statement(words=(), assigned={}, redirections=redirections)
        is_taken = self._write(statement, output)
        if is_taken or writes_pipe:
            del self.run.printed[block.num_printed :]
        self.piped = output if writes_pipe and not is_taken else None

    def _write(self, statement: Statement, output: Word | None) -> bool:
        is_sure = self.flow.is_sure and self.run.is_certain
        files, directory = self.run.files, self.scope.directory
        return deeds.write(statement, output, files, directory, is_sure=is_sure)

    def output_of(self, script: str) -> Word | None:
        """Return what the commands of `$(…)` print, or None where that is not known."""
        text = script.strip()
        is_speaking = _SPEAKING.match(text) is not None
        if self.num_dry or self.flow.is_dead or not (is_speaking or _STARTING.search(text)):
            return None
        if text.startswith("<"):
            text = f"cat {text[1:]}"
        run, before = self.run, self.scope.state()
        outer, is_certain, num_commands = run.printed, run.is_certain, len(run.commands)
        run.printed, run.is_certain = [], is_certain and self.flow.is_sure
        try:
            word = Word(text=text, origin=self.origin)
            _Reader(word, run, is_sure=True, depth=self.num_calls + 1).read()
            parts = run.printed
        finally:
            run.printed, run.is_certain = outer, is_certain
            self.scope.restore(before)
            inner = run.commands[num_commands:]
            run.commands[num_commands:] = [one for one in inner if starts_program(one.words)]
        found = _all_of(parts) if is_speaking else None
        return found if found is not None and len(found.text) <= MAX_VALUE else None

    def _command(self, statement: Statement, given: Word | None) -> None:
        words, assigned, is_alone = statement.words, statement.assigned, statement.is_alone
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
        elif name in ("source", ".") and self._source(words[1:], is_alone=is_alone):
            return
        elif name in ("exit", "return"):
            if not is_alone:
                self._end(Exit.RETURN if name == "return" else status_of(words))
        elif name in ("break", "continue"):
            self.flow.leave_loop()
        else:
            self._plain_command(words, assigned, given, is_alone=is_alone)

    def _plain_command(
        self,
        words: tuple[Word, ...],
        assigned: Variables,
        given: Word | None,
        *,
        is_alone: bool,
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
                given=given,
            )
        )
        if is_alone:
            return
        if name == "exec" and any(not word.text.startswith("-") for word in words[1:]):
            self._end(Exit.SUCCESS)
        elif waits_forever(words):
            self.flow.doubt_rest()

    def _source(self, words: tuple[Word, ...], *, is_alone: bool) -> bool:
        """Read the file that is sourced, if it is seen; its settings stay."""
        if not words or self.num_dry or builtins.is_harmless_file(words[0].text):
            return False
        file = self.run.files.look(words[0].text, directory=self.scope.directory)
        if file.text is None or not words[0].is_known:
            return False
        self.budget.read_script(len(file.text))
        outer = self.scope.arguments
        if words[1:]:
            self.scope.arguments = words[1:]
        text = Word(text=file.text, origin=file.source)
        self._read_inner(text, is_alone=is_alone, is_sure=self.flow.is_sure and file.is_sure)
        if words[1:]:
            self.scope.arguments = outer
        if not file.is_sure:
            self.scope.forget()
        return True

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

    def _read_inner(self, text: Word, *, is_alone: bool, is_sure: bool | None = None) -> _Reader:
        is_sure = self.flow.is_sure if is_sure is None else is_sure
        inner = _Reader(text, self.run, is_sure=is_sure, depth=self.num_calls + 1)
        inner.read()
        if inner.exit in (Exit.SUCCESS, Exit.FAILURE) and not is_alone:
            if inner.flow.is_dead:
                self._end(inner.exit)
            elif inner.exit is Exit.SUCCESS:
                self.exit = Exit.SUCCESS
                self.flow.doubt_rest()
        return inner


def _all_of(parts: list[Word | None]) -> Word | None:
    """Return what was printed as one text, unless a part of it is not known, or it is too long."""
    known = [part for part in parts if part is not None]
    is_whole = len(known) == len(parts) and sum(len(part.text) for part in known) <= MAX_OUTPUT
    return joined(known) if is_whole else None
