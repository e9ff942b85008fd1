"""What commands print, where that follows from their words.

    words, what they read -> text, or None where it is not known

`echo`, `printf`, `cat`, `tee` and what prints nothing. Nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from admission.detect.words import Word, references

MAX_OUTPUT = 256 << 10
"""Characters of what one command prints; more is not known."""

Reader = Callable[[str], Word | None]
"""Path -> the text of that file, or None if it is not seen."""

NOTHING = Word(text="")
_QUIET = frozenset(
    {
        "true",
        ":",
        "cd",
        "export",
        "mkdir",
        "chmod",
        "chown",
        "touch",
        "rm",
        "sleep",
        "cp",
        "mv",
        "ln",
    }
)
_FLAG = re.compile(r"-[neE]+")
_ESCAPE = re.compile(r"\\(?:([abefnrtv\\])|0([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(c))")
_ESCAPED = {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED |= {"v": "\v", "\\": "\\"}
_DIRECTIVE = re.compile(r"%(%|s|d|b)|%")
_OCTAL = re.compile(r"\\([0-7]{1,3})")
_MAX_ROUNDS = 1_000


def printed(words: tuple[Word, ...], *, given: Word | None, read: Reader) -> Word | None:
    """Return what the command *words* prints; *given* is what it reads, None if not known."""
    name, arguments = words[0].text.rpartition("/")[2], words[1:]
    if name == "echo":
        return _echo(arguments)
    if name == "printf":
        return _printf(arguments)
    if name == "cat":
        return _cat(arguments, given, read)
    if name == "tee":
        return given
    return NOTHING if name in _QUIET else None


def joined(parts: Iterable[Word]) -> Word:
    """Return *parts* as one word."""
    found = tuple(parts)
    text = "".join(part.text for part in found)
    return Word(
        text=text,
        origin=found[0].origin if found else "",
        unresolved=references(text, (name for part in found for name in part.unresolved)),
        is_template=any(part.is_template for part in found),
    )


def _echo(arguments: tuple[Word, ...]) -> Word | None:
    ends, is_escaped = "\n", False
    while arguments and _FLAG.fullmatch(arguments[0].text):
        for letter in arguments[0].text[1:]:
            ends = "" if letter == "n" else ends
            is_escaped = letter == "e" if letter in "eE" else is_escaped
        arguments = arguments[1:]
    parts: list[Word] = []
    for index, word in enumerate(arguments):
        parts += (Word(text=" "), word) if index else (word,)
    line = joined(parts)
    if is_escaped and "\\c" in line.text:
        return None
    text = _unescaped(line.text) if is_escaped else line.text
    return _with_text(line, text + ends)


def _printf(arguments: tuple[Word, ...]) -> Word | None:
    if arguments and arguments[0].text == "--":
        arguments = arguments[1:]
    if not arguments or arguments[0].text.startswith("-") or not arguments[0].is_known:
        return None
    template, values = arguments[0].text, list(arguments[1:])
    if any(match.group() == "%" for match in _DIRECTIVE.finditer(template)):
        return None
    parts: list[Word] = []
    for number in range(_MAX_ROUNDS):
        if (number + 1) * len(template) > MAX_OUTPUT:
            return None
        before, at = len(values), 0
        for match in _DIRECTIVE.finditer(template):
            parts.append(Word(text=_format_text(template[at : match.start()])))
            at = match.end()
            if match.group(1) == "%":
                parts.append(Word(text="%"))
                continue
            value = values.pop(0) if values else Word(text="0" if match.group(1) == "d" else "")
            if match.group(1) == "d" and not re.fullmatch(r"-?(?:0|[1-9]\d*)", value.text):
                return None
            if match.group(1) == "b":
                value = _with_text(value, _unescaped(value.text))
            parts.append(value)
        parts.append(Word(text=_format_text(template[at:])))
        if not values or len(values) == before:
            return joined(parts)
    return None


def _format_text(text: str) -> str:
    text = text.replace('\\"', '"')
    return _unescaped(_OCTAL.sub(lambda found: chr(int(found.group(1), 8) % 256), text))


def _cat(arguments: tuple[Word, ...], given: Word | None, read: Reader) -> Word | None:
    paths = [word for word in arguments if not word.text.startswith("-") or word.text == "-"]
    if len(paths) != len(arguments):
        return None
    parts: list[Word] = []
    length = 0
    for word in paths or [Word(text="-")]:
        text = given if word.text == "-" else read(word.text)
        length += len(text.text) if text is not None else 0
        if text is None or length > MAX_OUTPUT:
            return None
        parts.append(text)
    return joined(parts)


def _with_text(word: Word, text: str) -> Word:
    return Word(
        text=text, origin=word.origin, unresolved=word.unresolved, is_template=word.is_template
    )


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        letter, octal, code, _ = match.groups()
        if letter:
            return _ESCAPED[letter]
        return chr(int(octal or code or "0", 8 if octal else 16) % 256)

    return _ESCAPE.sub(character, text) if "\\" in text else text
