"""Where the texts inside a shell script end: `$( … )`, and here-documents.

    text, position -> the position after it

Knows quotes, comments and here-documents, and nothing of what they mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MAX_DEPTH = 50
_SPECIAL = re.compile(r"[\\'\"()#\n<`]")
_QUOTED = re.compile(r"[\"\\$`]")
_TAG = re.compile(r"<<(-?)[ \t]*((?:\\.|'[^']*'|\"[^\"]*\"|[^\s;|&<>()'\"\\])+)")
_TABS = re.compile(r"^\t+", re.MULTILINE)
_LINE = re.compile(r"[\\'\"\n#]")


@dataclass(frozen=True, slots=True)
class Tag:
    """What stands after `<<`."""

    delimiter: str
    end: int
    """Position after it."""
    is_quoted: bool
    """Nothing in the text is expanded."""
    strips_tabs: bool


@dataclass(frozen=True, slots=True)
class Body:
    """The lines of a here-document."""

    text: str
    end: int
    """Position of the line after its delimiter."""


def tag_at(text: str, start: int) -> Tag | None:
    """Return the tag of the here-document that `<<` at *start* announces."""
    match = _TAG.match(text, start)
    if match is None:
        return None
    raw = match.group(2)
    plain = re.sub(r"\\(.)|['\"]", lambda found: found.group(1) or "", raw)
    return Tag(plain, match.end(), plain != raw, bool(match.group(1)))


def body_from(text: str, start: int, tag: Tag) -> Body:
    """Return the here-document whose first line is at *start*; one without an end goes to it."""
    tabs = r"\t*" if tag.strips_tabs else ""
    end = re.compile(rf"^{tabs}{re.escape(tag.delimiter)}(?:\n|\Z)", re.MULTILINE)
    match = end.search(text, start) if "\n" not in tag.delimiter else None
    body = text[start : match.start()] if match else text[start:]
    if body and not body.endswith("\n"):
        body += "\n"
    if tag.strips_tabs:
        body = _TABS.sub("", body)
    return Body(body, match.end() if match else len(text))


def next_line(text: str, start: int) -> int:
    """Return where the line after the command line at *start* begins."""
    at = start
    while match := _LINE.search(text, at):
        char, at = match.group(), match.end()
        if char == "\n":
            return at
        if char == "\\":
            at += 1
        elif char == "#":
            if text[at - 2 : at - 1] in (" ", "\t", ";"):
                end = text.find("\n", at)
                return end + 1 if end >= 0 else len(text)
        else:
            at = _quote_end(text, at - 1)
    return len(text)


def substitution_end(text: str, start: int, *, depth: int = 0) -> int:
    """Return the position after the `)` that closes the `(` at *start* of a command."""
    at, num_open = start + 1, 1
    pending: list[Tag] = []
    while match := _SPECIAL.search(text, at):
        char, at = match.group(), match.end()
        if char == "\\":
            at += 1
        elif char in "'\"`":
            at = _quote_end(text, at - 1, depth=depth)
        elif char == "(":
            num_open += 1
        elif char == ")":
            num_open -= 1
            if not num_open:
                return at
        elif char == "#":
            if text[at - 2] in " \t\n;(&|":
                end = text.find("\n", at)
                at = end if end >= 0 else len(text)
        elif char == "\n":
            for tag in pending:
                at = body_from(text, at, tag).end
            pending = []
        elif text.startswith("<<<", at - 1):
            at += 2
        else:
            found = tag_at(text, at - 1)
            if found is not None:
                pending.append(found)
                at = found.end
    return len(text)


def _quote_end(text: str, start: int, *, depth: int = 0) -> int:
    """Return the position after the string that opens at *start*."""
    quote = text[start]
    if quote == "'":
        end = text.find(quote, start + 1)
        return end + 1 if end >= 0 else len(text)
    at = start + 1
    while match := _QUOTED.search(text, at):
        char, at = match.group(), match.end()
        if char == "\\":
            at += 1
        elif char == quote:
            return at
        elif char == "$" and text.startswith("(", at) and quote == '"' and depth < _MAX_DEPTH:
            at = substitution_end(text, at, depth=depth + 1)
    return len(text)
