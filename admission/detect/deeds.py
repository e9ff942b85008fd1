"""What the commands of a script do to files.

    statement, what it reads and prints -> (the files, changed)

What a file holds is known where the words say it; a file that is changed otherwise is not known.
Not modelled: a block that reads the file its own output goes to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from admission.detect.files import Files
from admission.detect.output import MAX_OUTPUT, printed
from admission.detect.run import Statement
from admission.detect.scope import Scope
from admission.detect.words import Word, references

_WRITING = ("&", "", "1")
_UNRESOLVED = "UNRESOLVED_"
_REFERENCE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_NO_NAME = re.compile(r"\W+")
_COPYING = frozenset({"cp", "mv", "ln", "install"})
_WRITERS = _COPYING | {"tee", "sed"}
"""Commands that write files by themselves."""


def given_to(statement: Statement, piped: Word | None, files: Files, directory: str) -> Word | None:
    """Return what *statement* reads: a here-document, a file, or what the one before it prints."""
    found = piped if statement.reads_pipe else None
    for item in statement.redirections:
        if item.stream not in ("", "0"):
            continue
        if item.operator == "<<":
            found = item.target
        elif item.operator == "<<<":
            text = f"{item.target.text}\n"
            found = Word(text=text, unresolved=item.target.unresolved)
        elif item.operator in ("<", "<>"):
            found = text_of(files, item.target, directory)
    return found


def output_of(
    words: tuple[Word, ...], given: Word | None, files: Files, scope: Scope
) -> Word | None:
    """Return what the command *words* prints, None where that is not known."""

    def read(path: str) -> Word | None:
        return text_of(files, Word(text=path), scope.directory)

    if words[0].text.rpartition("/")[2] == "envsubst" and len(words) == 1 and given is not None:
        return _substituted(given, scope)
    return printed(words, given=given, read=read)


def depends_on_shell(words: tuple[Word, ...]) -> bool:
    """Return whether shells differ in what *words* print: `echo` with a backslash or an option."""
    texts = [word.text for word in words[1:]]
    options = bool(texts) and texts[0].startswith("-") and texts[0] != "-n"
    return words[0].text == "echo" and (options or any("\\" in text for text in texts))


def text_of(files: Files, path: Word, directory: str) -> Word | None:
    """Return the text of the file at *path*, unless it may hold another one."""
    file = files.look(path.text, directory=directory)
    if file.text is None or not file.is_sure or not path.is_known:
        return None
    return Word(text=file.text, origin=file.source, unresolved=file.unresolved)


def write(
    statement: Statement, output: Word | None, files: Files, directory: str, *, is_sure: bool
) -> bool:
    """Note the files that *statement* writes; return whether its output goes there."""
    is_taken = False
    for item in statement.redirections:
        if item.operator[:1] != ">" and item.operator != "<>":
            continue
        if item.operator == ">&" and (item.target.text.isdigit() or item.stream not in _WRITING):
            is_taken = is_taken or item.stream in ("", "1")
            continue
        takes_output = item.stream in _WRITING and item.operator != "<>"
        is_taken = is_taken or takes_output
        is_own = any(word.text == item.target.text for word in statement.words[1:])
        content = output if takes_output and item.stream != "&" and not is_own else None
        _put(files, item.target, content, directory, item.operator, statement, is_sure=is_sure)
    name = statement.words[0].text.rpartition("/")[2] if statement.words else ""
    for word, content, operator in _deeds(name, statement.words[1:], output, files, directory):
        _put(files, word, content, directory, operator, statement, is_sure=is_sure)
    return is_taken


def file_text(word: Word) -> Word:
    """Return *word* as the text of a file: variables that are not known get names nobody has.

    So whoever reads the file later cannot take them for his own variables.
    """
    text = word.text
    names: list[str] = []
    for reference in sorted(word.unresolved, key=len, reverse=True):
        name = reference
        if reference.startswith("`"):
            name = f"$({reference.strip('`')})"
        elif reference.startswith("$") and not reference.startswith("$("):
            plain = _NO_NAME.sub("_", reference.strip("${}")).removeprefix(_UNRESOLVED)
            name = f"${_UNRESOLVED}{plain[:64]}"
        text = text.replace(reference, name)
        names.append(name)
    return Word(text=text, unresolved=tuple(dict.fromkeys(names)))


def _put(
    files: Files,
    path: Word,
    content: Word | None,
    directory: str,
    operator: str,
    statement: Statement,
    *,
    is_sure: bool,
) -> None:
    if path.text == "/dev/null":
        return
    known = file_text(content) if content is not None else None
    text = known.text if known is not None else None
    unresolved = known.unresolved if known is not None else ()
    if operator == ">>":
        text = None if statement.is_repeated else text
        files.append(path.text, text, directory=directory, unresolved=unresolved, is_sure=is_sure)
    else:
        files.write(path.text, text, directory=directory, unresolved=unresolved, is_sure=is_sure)


def _deeds(
    name: str, words: tuple[Word, ...], output: Word | None, files: Files, directory: str
) -> Iterable[tuple[Word, Word | None, str]]:
    """Yield path, text and operator of what the command itself writes."""
    if name not in _WRITERS:
        return
    paths = tuple(word for word in words if not word.text.startswith("-"))
    if name == "tee":
        adds = any(word.text in ("-a", "--append") for word in words)
        yield from ((path, output, ">>" if adds else ">") for path in paths)
    elif name in _COPYING and len(paths) == 2 and paths[1].is_known:
        content = text_of(files, paths[0], directory)
        target = paths[1]
        if target.text.endswith("/") or target.text in (".", ".."):
            last = paths[0].text.rpartition("/")[2]
            target = Word(text=f"{target.text.rstrip('/')}/{last}")
        if content is not None:
            yield target, content, ">"
    elif name == "sed" and any(word.text.startswith(("-i", "--in-place")) for word in words):
        yield from ((path, None, ">") for path in paths)


def _substituted(text: Word, scope: Scope) -> Word | None:
    """Return *text* with the variables that are known put in, as `envsubst` does."""
    unresolved: list[str] = [*text.unresolved]
    parts: list[str] = []
    at = length = 0
    for match in _REFERENCE.finditer(text.text):
        found = scope.get(match.group(1))
        value = found[0].text if found and len(found) == 1 and found[0].is_known else None
        if value is None:
            unresolved.append(match.group())
        parts += (text.text[at : match.start()], match.group() if value is None else value)
        at = match.end()
        length += len(parts[-1])
        if length > MAX_OUTPUT:
            return None
    parts.append(text.text[at:])
    whole = "".join(parts)
    return Word(text=whole, origin=text.origin, unresolved=references(whole, unresolved))
