"""A container's commands by what they are.

Container, Commands -> Programs
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from admission.detect import activity
from admission.detect.commands import SHELLS, Commands
from admission.detect.container import Container
from admission.detect.files import Files
from admission.detect.invocation import Invocation
from admission.detect.launchers.wrappers import SUBCOMMANDS, WRAPPERS
from admission.detect.ranks import hides_all_gpus
from admission.detect.run import Command
from admission.detect.scripts import Family, Match, families_of
from admission.detect.words import Word
from estimator.deferred import Deferred

if TYPE_CHECKING:
    from admission.detect.scripts import seen
else:
    seen = Deferred("admission.detect.scripts.seen")


@dataclass(slots=True)
class Programs:
    """What a container runs, sorted."""

    known: list[tuple[Invocation, Family]] = field(default_factory=list)
    on_cpu: list[str] = field(default_factory=list)
    """Those that are told to leave the GPU alone."""
    ambiguous: list[tuple[Invocation, tuple[Family, ...]]] = field(default_factory=list)
    unread: list[tuple[str, str, tuple[Word, ...]]] = field(default_factory=list)
    """Name, what it is, arguments."""
    opaque: list[str] = field(default_factory=list)
    """What is run and cannot be seen into."""
    launched: list[str] = field(default_factory=list)
    """Those of them that a launcher starts: trainings, surely."""
    templates: list[Word] = field(default_factory=list)
    """Commands that are not resolved."""
    idle: bool = False
    """A smoke test, a server, a notebook."""


def sorted_programs(container: Container, commands: Commands) -> Programs:
    """Return the commands of *container*, sorted."""
    found = Programs()
    for invocation in commands.invocations:
        _sort_invocation(invocation, commands, found)
    if commands.inline:
        found.opaque.append("Python code on the command line")
    for command in commands.others:
        _sort_command(command, container, commands.files, found)
    return found


def _sort_invocation(invocation: Invocation, commands: Commands, found: Programs) -> None:
    name = invocation.name
    if not invocation.program.is_known:
        found.templates.append(invocation.program)
        return
    if invocation.is_module:
        if activity.is_serving_module(name):
            found.idle = True
            return
        if name in activity.TOOLS:
            return
    families = families_of(invocation)
    if invocation.is_module and not any(_is_own(family, invocation) for family in families):
        for beginning, title in activity.UNREAD_MODULES.items():
            if name.startswith(beginning):
                found.unread.append((name, title, invocation.arguments))
                return
    if len(families) == 1 and _is_on_cpu(invocation, families[0]):
        found.on_cpu.append(name)
    elif len(families) == 1:
        found.known.append((invocation, families[0]))
    elif families:
        found.ambiguous.append((invocation, families))
    elif (family := _seen(invocation, commands)) is not None:
        found.known.append((invocation, family))
    else:
        found.opaque.append(f"{name}{_why_unread(invocation, commands)}")
        if invocation.launch.is_distributed:
            found.launched.append(name)


def _seen(invocation: Invocation, commands: Commands) -> Family | None:
    """Return the family of a script whose text is there, if it is one that can be read."""
    if invocation.is_module:
        return None
    file = commands.files.look(invocation.program.text, directory=invocation.directory)
    if file.text is None:
        return None
    return seen.seen_family(invocation, file, commands.files, commands.budget)


def _why_unread(invocation: Invocation, commands: Commands) -> str:
    """Return what in a script that is seen keeps it from being read, in brackets."""
    if invocation.is_module:
        return ""
    file = commands.files.look(invocation.program.text, directory=invocation.directory)
    trainer = seen.other_trainer(file.text) if file.text is not None else ""
    return f" (seen in {file.source:.60}, but {trainer} is not read)" if trainer else ""


def _is_own(family: Family, invocation: Invocation) -> bool:
    """Return whether the module is surely the family's."""
    return family.match(invocation, family.flags(invocation)) is Match.PLACE


def _is_on_cpu(invocation: Invocation, family: Family) -> bool:
    """Return whether the program is told to leave the GPU alone, by a flag or a variable."""
    return (
        invocation.launch.is_on_cpu
        or hides_all_gpus(invocation.variables)
        or family.is_on_cpu(family.flags(invocation))
    )


def _sort_command(command: Command, container: Container, files: Files, found: Programs) -> None:
    word = command.words[0]
    name = word.text.rpartition("/")[2]
    if not word.is_known and word.text in word.unresolved:
        found.templates.append(word)
    elif activity.is_no_training(name):
        found.idle = True
    elif name in activity.UNREAD:
        found.unread.append((name, activity.UNREAD[name], command.words[1:]))
    elif word.text.startswith("-"):
        if not activity.is_smoke_image(container.image):
            found.opaque.append("the image's own entry point")
    elif word.origin == "args" and activity.is_smoke_image(container.image):
        found.idle = True
    elif name in SHELLS:
        script = next((w.text for w in command.words[1:] if not w.text.startswith("-")), name)
        problem = files.look(script, directory=command.directory).problem
        script = script.rpartition("/")[2]
        if activity.is_no_training(script):
            found.idle = True
        else:
            is_told = "ConfigMap" in problem or "Secret" in problem
            found.opaque.append(f"{script} ({problem})" if is_told else script)
    elif name in WRAPPERS or name in SUBCOMMANDS:
        return
    elif not activity.is_preparation((name, *(word.text for word in command.words[1:]))):
        opened = command.words[1:2] if name in ("source", ".") else ()
        found.opaque.append(opened[0].text.rpartition("/")[2] if opened else name)
