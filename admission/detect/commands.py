"""Everything a container starts, sorted into what can be read and what cannot.

Container -> calls of scripts, other programs, downloads, installed versions
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from admission.detect.budget import Budget, LimitError
from admission.detect.container import Container
from admission.detect.invocation import Invocation, Launch
from admission.detect.launchers import Line, unwrap
from admission.detect.launchers.python import is_python
from admission.detect.scope import State
from admission.detect.shell import Command, read_script
from admission.detect.words import Word

MAX_DEPTH = 8
_CONFIGURATION = "default_config.yaml"
SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})


@dataclass(slots=True)
class Commands:
    """What was found. Filled while the command line is read, not changed afterwards."""

    budget: Budget
    invocations: list[Invocation] = field(default_factory=list)
    others: list[Command] = field(default_factory=list)
    """Commands that are no call of Python, in order."""
    inline: list[Word] = field(default_factory=list)
    """`python -c` and `python -`: code we do not read."""
    problems: list[str] = field(default_factory=list)
    fetched: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """Packages that `pip install` pins."""
    writes_configuration: bool = False
    """A file that accelerate reads by default is written."""


def commands_of(container: Container, budget: Budget) -> Commands:
    """Return what *container* starts, as far as *budget* goes."""
    found = Commands(budget=budget, problems=list(container.problems))
    if container.argv:
        first = Command(
            words=container.argv,
            variables=container.variables,
            directory=container.directory,
        )
        try:
            _read(first, container, found, depth=0)
        except LimitError as error:
            found.problems.append(str(error))
    found.invocations = [
        replace(invocation, fetched=found.fetched) for invocation in found.invocations
    ]
    return found


def _read(command: Command, container: Container, found: Commands, *, depth: int) -> None:
    """Take launchers and shells off *command* and note what is left."""
    if depth > MAX_DEPTH:
        raise LimitError("the command line nests too deep")
    found.budget.add_command()
    line = Line(words=command.words, where=container.where, path=container.path)
    launch: Launch | None = None
    for _ in range(MAX_DEPTH):
        if line.name in SHELLS:
            for inner in _shell_commands(line, command, found):
                _read(inner, container, found, depth=depth + 1)
            return
        step = unwrap(line)
        if step is None:
            break
        launch = _outer(launch, step.launch)
        if step.assigned:
            variables = State(command.variables, step.assigned)
            command = replace(command, variables=variables)
        if step.program is not None:
            if step.is_module and step.program.text == "pip":
                _note_versions((step.program, *step.rest), found)
                return
            found.invocations.append(
                Invocation(
                    program=step.program,
                    is_module=step.is_module,
                    arguments=step.rest,
                    variables=command.variables,
                    directory=command.directory,
                    where=container.where,
                    path=container.path,
                    launch=launch or Launch(),
                    is_sure=command.is_sure,
                )
            )
            return
        line = Line(words=step.rest, where=line.where, path=line.path)
    else:
        raise LimitError(f"more than {MAX_DEPTH} launchers around one program")
    if is_python(line.name):
        found.inline.append(line.words[0])
        return
    found.others.append(replace(command, words=line.words))
    _note_download(line, found)
    _note_versions(line.words, found)


def _outer(launch: Launch | None, inner: Launch | None) -> Launch | None:
    """Return the launch that decides when launchers nest: the one that starts processes."""
    if launch is None or inner is None:
        return launch or inner
    return inner if inner.is_distributed else launch


def _shell_commands(line: Line, command: Command, found: Commands) -> Iterator[Command]:
    """Yield the commands of `bash -c SCRIPT [NAME ARGUMENTS…]`."""
    script, arguments = _script_of(line)
    if script is None:
        found.others.append(replace(command, words=line.words))
        return
    result = read_script(
        script,
        variables=command.variables,
        budget=found.budget,
        arguments=arguments,
        directory=command.directory,
        is_sure=command.is_sure,
    )
    if result.problem is not None:
        found.problems.append(result.problem)
    found.writes_configuration |= any(_CONFIGURATION in target for target in result.written)
    yield from result.commands


def _script_of(line: Line) -> tuple[Word | None, tuple[Word, ...]]:
    words = line.words[1:]
    at = 0
    runs_text = False
    while at < len(words) and words[at].text[:1] in ("-", "+") and words[at].text != "--":
        text = words[at].text
        at += 1
        if text.startswith("--"):
            continue
        runs_text = runs_text or "c" in text[1:]
        if text[-1:] in ("o", "O"):
            at += 1
    if not runs_text or at >= len(words):
        return None, ()
    return words[at], words[at + 2 :]


def _note_download(line: Line, found: Commands) -> None:
    """Remember which file `wget`, `curl` or `git clone` brings from where."""
    if line.name not in ("wget", "curl", "git"):
        return
    texts = [word.text for word in line.words[1:]]
    url = next((text for text in texts if "://" in text), None)
    if url is None:
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
