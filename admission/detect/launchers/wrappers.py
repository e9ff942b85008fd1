"""Commands that only run another one: nice, env, numactl, nsys, `uv run`, …"""

from __future__ import annotations

from admission.detect.launchers.step import Line, Step
from admission.detect.words import Word

WRAPPERS: dict[str, frozenset[str]] = {
    "exec": frozenset({"-a"}),
    "command": frozenset(),
    "builtin": frozenset(),
    "env": frozenset({"-u", "--unset", "-C", "--chdir", "-S"}),
    "nice": frozenset({"-n", "--adjustment"}),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "timeout": frozenset({"-k", "-s", "--kill-after", "--signal"}),
    "time": frozenset({"-f", "-o"}),
    "sudo": frozenset({"-u", "-g"}),
    "gosu": frozenset(),
    "tini": frozenset(),
    "dumb-init": frozenset(),
    "catchsegv": frozenset(),
    "ionice": frozenset({"-c", "-n"}),
    "taskset": frozenset(),
    "numactl": frozenset({"-N", "-m", "-C", "-i"}),
    "xvfb-run": frozenset({"-n", "-s", "-e"}),
    "opentelemetry-instrument": frozenset(),
    "kernprof": frozenset(),
    "nvidia_entrypoint.sh": frozenset(),
    "py-spy": frozenset({"-o", "-r"}),
    "xargs": frozenset({"-n", "-I", "-P", "-d", "-L", "-s", "-a", "-E", "--max-procs"}),
}
"""Wrapper -> its flags that take a value of their own."""

SUBCOMMANDS = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "conda": ("run",),
    "mamba": ("run",),
    "micromamba": ("run",),
    "nsys": ("profile",),
    "py-spy": ("record",),
}
_WITH_VALUE = {
    "conda": frozenset({"-n", "--name", "-p", "--prefix", "--cwd"}),
    "mamba": frozenset({"-n", "--name", "-p", "--prefix", "--cwd"}),
    "micromamba": frozenset({"-n", "--name", "-p", "--prefix", "--cwd"}),
    "uv": frozenset({"--with", "--python", "-p", "--extra", "--group", "--env-file", "--project"}),
    "nsys": frozenset({"-o", "--output", "-t", "--trace", "-s", "--sample", "-c", "-y", "-d"}),
    "py-spy": frozenset({"-o", "-r", "-d", "-f"}),
}
_PIPED = Word(text="$(input of xargs)", unresolved=("$(input of xargs)",))
"""Stands for the words that `xargs` adds."""
_WITH_POSITIONAL = ("timeout", "taskset", "gosu")
"""One word of their own before the command: a duration, a mask, a user."""


def unwrap(line: Line) -> Step | None:
    """Return the command line inside a wrapper, or None if this is none."""
    words = line.words[1:]
    name = line.name
    if name in SUBCOMMANDS:
        if not words or words[0].text not in SUBCOMMANDS[name]:
            return None
        words, with_value = words[1:], _WITH_VALUE.get(name, frozenset())
    elif name in WRAPPERS:
        with_value = WRAPPERS[name]
    else:
        return None
    at = 0
    assigned: dict[str, tuple[Word, ...] | None] = {}
    while at < len(words) and words[at].text.startswith("-"):
        if name == "env" and words[at].text in ("-u", "--unset") and at + 1 < len(words):
            assigned[words[at + 1].text] = None
        at += 2 if words[at].text in with_value else 1
    if name in _WITH_POSITIONAL:
        at += 1
    while name in ("env", "sudo") and at < len(words) and "=" in words[at].text:
        variable, _, value = words[at].text.partition("=")
        assigned[variable] = (words[at].part(value),)
        at += 1
    more = (_PIPED,) if name == "xargs" else ()
    return Step(rest=(*words[at:], *more), assigned=assigned) if words[at:] else None
