"""The shell script that a command runs, where its text is seen.

    `bash -c TEXT`, `bash x.sh`, `./x.sh`, `bash <<EOF` -> text, arguments

A script in a ConfigMap that is mounted, or one that the command line has written before.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from admission.detect.launchers.step import Line
from admission.detect.words import Word

SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_PYTHON = "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptFile:
    """The text of a script, and how it is called."""

    text: Word
    arguments: tuple[Word, ...] = ()
    is_bash: bool = True
    is_sure: bool = True
    """False: it is written under a condition only."""


def script_of(line: Line, given: Word | None) -> ScriptFile | None:
    """Return the shell script that *line* runs; *given* is what it reads, if that is known."""
    if line.name in SHELLS:
        return _of_shell(line, given)
    word = line.words[0] if line.words else Word(text="")
    is_path = "/" in word.text and word.is_known and not line.name.endswith(".py")
    return _of_file(line, word, line.words[1:]) if is_path else None


def _of_shell(line: Line, given: Word | None) -> ScriptFile | None:
    """Return the script of `sh`, with its own flags before it."""
    words, is_bash = line.words[1:], line.name == "bash"
    at = 0
    runs_text = reads_input = is_checked = False
    while at < len(words) and words[at].text[:1] in ("-", "+") and words[at].text != "--":
        text = words[at].text
        at += 1
        if text.startswith("--"):
            at += text in ("--rcfile", "--init-file")
            continue
        runs_text = runs_text or "c" in text[1:]
        reads_input = reads_input or "s" in text[1:]
        is_checked = is_checked or (text[0] == "-" and "n" in text[1:])
        if text[-1:] in ("o", "O"):
            at += 1
    if at < len(words) and words[at].text == "--":
        at += 1
    if is_checked:
        return ScriptFile(text=Word(text=""))
    if runs_text:
        if at >= len(words):
            return None
        return ScriptFile(text=words[at], arguments=words[at + 2 :], is_bash=is_bash)
    if at >= len(words) or reads_input:
        if given is None or not given.is_known:
            return None
        return ScriptFile(text=given, arguments=words[at:], is_bash=is_bash)
    return _of_file(line, words[at], words[at + 1 :], shell=line.name)


def _of_file(
    line: Line, path: Word, arguments: tuple[Word, ...], *, shell: str = ""
) -> ScriptFile | None:
    """Return the script in the file at *path*, unless another program is to run it."""
    if not path.is_known:
        return None
    file = line.read_file(path.text)
    if file.text is None:
        return None
    first = file.text.partition("\n")[0] if file.text.startswith("#!") else ""
    is_other = first and posixpath.basename(first.split()[0]) not in (*SHELLS, "#!env", "env")
    if not shell and (is_other or _PYTHON in first):
        return None
    origin = f"{path.origin or 'args'} ({file.source})"
    text = Word(text=file.text, origin=origin)
    is_bash = shell == "bash" or (not shell and "bash" in first)
    return ScriptFile(text=text, arguments=arguments, is_bash=is_bash, is_sure=file.is_sure)
