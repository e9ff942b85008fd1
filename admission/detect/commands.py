"""Everything a container starts, sorted into what can be read and what cannot.

Container -> calls of scripts, other programs, downloads, installed versions
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from admission.detect.activity import is_smoke_image
from admission.detect.budget import Budget, LimitError
from admission.detect.clones import note_clone
from admission.detect.container import Container
from admission.detect.entrypoints import whole_command
from admission.detect.files import Files
from admission.detect.idle_calls import only_explains
from admission.detect.invocation import Invocation, Launch
from admission.detect.launchers import LAUNCHERS, Line, Step, unwrap
from admission.detect.launchers.python import is_python
from admission.detect.run import Command
from admission.detect.scope import State
from admission.detect.scripted import SHELLS, ScriptFile, script_of
from admission.detect.words import Word
from estimator.deferred import Deferred

if TYPE_CHECKING:
    from admission.detect import shell
else:
    shell = Deferred("admission.detect.shell")

MAX_DEPTH = 8
ENTRY = "the image's own entry point"
"""Stands for the program where there are flags only."""

__all__ = ["SHELLS", "Commands", "commands_of"]


@dataclass(slots=True)
class Commands:
    """What was found. Filled while the command line is read, not changed afterwards."""

    budget: Budget
    files: Files
    invocations: list[Invocation] = field(default_factory=list)
    others: list[Command] = field(default_factory=list)
    """Commands that are no call of Python, in order."""
    inline: list[Word] = field(default_factory=list)
    """`python -c` and `python -`: code we do not read."""
    problems: list[str] = field(default_factory=list)
    fetched: dict[str, str] = field(default_factory=dict)
    cloned: dict[str, str] = field(default_factory=dict)
    """Folder of a repository that `git clone` brings -> URL."""
    versions: dict[str, str] = field(default_factory=dict)
    """Packages that `pip install` pins."""


def commands_of(container: Container, budget: Budget, files: Files) -> Commands:
    """Return what *container* starts, as far as *budget* goes; what it writes goes to *files*."""
    found = Commands(budget=budget, files=files, problems=list(container.problems))
    argv = whole_command(container)
    if argv:
        first = Command(
            words=argv,
            variables=container.variables,
            directory=container.directory,
        )
        try:
            _read(first, container, found, depth=0)
        except LimitError as error:
            found.problems.append(str(error))
    found.invocations = [
        replace(invocation, fetched=found.fetched, cloned=found.cloned, versions=found.versions)
        for invocation in found.invocations
    ]
    return found


def _read(
    command: Command,
    container: Container,
    found: Commands,
    *,
    depth: int,
    launch: Launch | None = None,
) -> None:
    """Take launchers and shells off *command* and note what is left.

    *launch*: what the launchers around it have said.
    """
    if depth > MAX_DEPTH:
        raise LimitError("the command line nests too deep")
    found.budget.add_command()
    if only_explains(command.words):
        return
    line = Line(
        words=command.words,
        where=container.where,
        path=container.path,
        variables=command.variables,
        directory=command.directory,
        files=found.files,
    )
    for _ in range(MAX_DEPTH):
        script = script_of(line, command.given)
        if script is not None:
            for inner in _commands_of(script, command, found):
                _read(inner, container, found, depth=depth + 1, launch=launch)
            return
        step = unwrap(_unseen_script(line) if line.name in SHELLS else line)
        if step is None:
            break
        launch = _outer(launch, step.launch)
        if step.assigned:
            variables = State(command.variables, step.assigned)
            command = command._replace(variables=variables)
        if step.program is not None:
            _note_program(step.program, step, command, container, found, launch)
            return
        line = replace(line, words=step.rest, variables=command.variables)
    else:
        raise LimitError(f"more than {MAX_DEPTH} launchers around one program")
    if is_python(line.name):
        found.inline.append(line.words[0])
        return
    if line.words[0].text.startswith("--") and not is_smoke_image(container.image):
        entry = Step(rest=line.words)
        _note_program(Word(text=ENTRY), entry, command, container, found, launch)
        return
    is_whole = line.words is command.words
    found.others.append(command if is_whole else command._replace(words=line.words))
    _note_download(line, found)
    _note_versions(line.words, found)


def _unseen_script(line: Line) -> Line:
    """Return the call of a known script that a shell runs and that is not seen: `sh x.sh 4`."""
    words = line.words[1:]
    while words and words[0].text[:1] == "-":
        words = words[1:]
    name = words[0].text.rpartition("/")[2] if words else ""
    return line.inner(*words) if name in LAUNCHERS and name.endswith(".sh") else line


def _note_program(
    program: Word,
    step: Step,
    command: Command,
    container: Container,
    found: Commands,
    launch: Launch | None,
) -> None:
    """Note the call of Python that is left."""
    if step.is_module and program.text == "pip":
        _note_versions((program, *step.rest), found)
        return
    found.invocations.append(
        Invocation(
            program=program,
            is_module=step.is_module,
            arguments=step.rest,
            variables=command.variables,
            directory=command.directory,
            where=container.where,
            path=container.path,
            launch=launch or Launch(),
            is_sure=command.is_sure,
            image=container.image,
        )
    )


def _outer(launch: Launch | None, inner: Launch | None) -> Launch | None:
    """Return the launch that decides when launchers nest: the one that starts processes."""
    if launch is None or inner is None:
        return launch or inner
    return inner if inner.is_distributed else launch


def _commands_of(script: ScriptFile, command: Command, found: Commands) -> Iterator[Command]:
    """Yield the commands of a shell script that *command* runs."""
    result = shell.read_script(
        script.text,
        variables=command.variables,
        budget=found.budget,
        arguments=script.arguments,
        directory=command.directory,
        is_sure=command.is_sure and script.is_sure,
        files=found.files,
        is_bash=script.is_bash,
    )
    if result.problem is not None:
        found.problems.append(result.problem)
    yield from result.commands


def _note_download(line: Line, found: Commands) -> None:
    """Remember which file or folder `wget`, `curl` or `git clone` brings from where."""
    if line.name not in ("wget", "curl", "git"):
        return
    texts = [word.text for word in line.words[1:]]
    url = next((text for text in texts if "://" in text), None)
    if url is None:
        return
    if line.name == "git":
        note_clone(texts, directory=line.directory, cloned=found.cloned)
        return
    name = url.rstrip("/").rpartition("/")[2]
    for flag, value in pairwise(texts):
        if flag in ("-O", "-o", "--output-document", "--output"):
            name = value.rpartition("/")[2]
    found.fetched[name] = url


def _note_versions(words: tuple[Word, ...], found: Commands) -> None:
    """Remember the versions that `pip install name==version` pins."""
    texts = [word.text for word in words]
    if "install" not in texts or not any(text.startswith("pip") for text in texts[:2]):
        return
    for text in texts:
        name, pinned, version = text.partition("==")
        if pinned and version:
            found.versions[name.partition("[")[0].lower().replace("_", "-")] = version
