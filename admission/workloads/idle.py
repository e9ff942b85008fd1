"""Containers that only wait until another pod starts something in them.

container -> yes or no

Not a shell: what it does not know by name counts as a program.
"""

from __future__ import annotations

import re

from admission.values import Json

MAX_SCRIPT = 4096
"""Characters of a command line that are looked at. Who only waits needs few."""
SHELLS = ("sh", "bash", "dash", "ash", "zsh")
_WAITING = frozenset({"sleep", "sshd", "tail", "pause", "read"})
_HARMLESS_WORDS = """
    . : [ [[ cat cd chmod chown cp do done echo else env export false fi hostname if ln mkdir
    printenv printf rm sed service set source ssh-keygen test then touch trap true ulimit umask
    until wait while
"""
_HARMLESS = frozenset(_HARMLESS_WORDS.split())
"""Setting up, none of which uses a GPU or lasts."""
_PREFIXES = frozenset(
    ["--", "do", "dumb-init", "exec", "if", "nohup", "sudo", "then", "tini", "until", "while", "!"]
)
_SEPARATORS = re.compile(r"&&|\|\||[;\n|&]")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=\S*")


def words_of(container: Json) -> tuple[str, ...]:
    """Return the command line of *container*, as far as it is text."""
    parts = (container.get(key) for key in ("command", "args"))
    return tuple(
        str(word)
        for part in parts
        if isinstance(part, list | tuple)
        for word in part
        if isinstance(word, str)
    )


def only_waits(container: Json) -> bool:
    """Return whether *container*'s command line is there and does nothing but wait."""
    words = words_of(container)
    if not words:
        return False
    script = " ".join(words)
    if words[0].rpartition("/")[2] in SHELLS:
        script = " ".join(word for word in words[1:] if not word.startswith("-"))
    if len(script) > MAX_SCRIPT:
        return False
    waits = False
    for part in _SEPARATORS.split(script):
        name, rest = _program(part)
        if name in _WAITING or (name == "ray" and rest[:1] == ["start"]):
            waits = True
        elif name and name not in _HARMLESS and part.split()[0] != "/etc/init.d/ssh":
            return False
    return waits


def _program(part: str) -> tuple[str, list[str]]:
    """Return the name of the program in one command, and its arguments."""
    words = part.split()
    while words and (
        words[0].rpartition("/")[2] in _PREFIXES
        or words[0].startswith("#")
        or _ASSIGNMENT.fullmatch(words[0])
    ):
        if words[0].startswith("#"):
            return "", []
        words = words[1:]
    return (words[0].rpartition("/")[2], words[1:]) if words else ("", [])
