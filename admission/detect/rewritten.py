"""Code that a command line changes before it runs it.

Invocation, Commands -> why what runs may not be the program that is known

An edit is not followed: whether it touches what takes memory, only its author knows.
"""

from __future__ import annotations

from admission.detect.commands import Commands
from admission.detect.invocation import Invocation
from admission.detect.run import Command

_EDITORS = {"sed": ("-i", "--in-place"), "perl": ("-i", "-pi", "-ni"), "ed": ("",), "ex": ("",)}
"""Editor -> how the options begin that make it write to the file; empty: it always does."""
_PLACING = frozenset({"cp", "mv", "ln", "install"})
_CODE = (".py", ".patch", ".diff")


def rewritten(invocation: Invocation, commands: Commands) -> str | None:
    """Return why the program of *invocation* may be another one than its name says."""
    if not invocation.is_module and commands.files.is_written(invocation.name):
        return f"{invocation.name:.80} is written by the command line, which is not read as Python"
    for command in commands.others:
        name, *rest = (word.text for word in command.words)
        name = name.rpartition("/")[2]
        if _is_edit(name, rest) or _replaces(name, command, invocation):
            return f"{name} changes code that is run; what it changes is not read"
    return None


def _is_edit(name: str, rest: list[str]) -> bool:
    if name == "patch" or (name == "git" and {"apply", "am", "cherry-pick"} & set(rest[:3])):
        return True
    beginnings = _EDITORS.get(name)
    if beginnings is None or not any(text.endswith(_CODE) for text in rest):
        return False
    return any(text.startswith(beginnings) for text in rest)


def _replaces(name: str, command: Command, invocation: Invocation) -> bool:
    """Return whether a file with another name is put in the place of the program."""
    paths = [word.text for word in command.words[1:] if not word.text.startswith("-")]
    if name not in _PLACING or invocation.is_module or len(paths) != 2:
        return False
    source, target = (path.rpartition("/")[2] for path in paths)
    return target == invocation.name and source != target
