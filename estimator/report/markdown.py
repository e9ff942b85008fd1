"""Sections as Markdown.

Sections -> text
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from estimator.report.sections import Section

_MARKS = re.compile(r"[\\|*`\[\]]|<(?=\S)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def markdown(sections: Iterable[Section], *, level: int = 2) -> str:
    """Return *sections* one below the other, their titles as headings of *level*."""
    return "\n\n".join(block for each in sections for block in _blocks(each, level))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, num_words: int) -> str:
    """Return a table whose first *num_words* columns are words and whose others are numbers."""
    rule = ["---"] * num_words + ["---:"] * (len(headings) - num_words)
    lines = [[*map(_cell, headings)], rule, *([*map(_cell, row)] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _blocks(section: Section, level: int) -> Iterable[str]:
    yield f"{'#' * level} {section.title}"
    if section.sentences:
        yield "\n".join(section.sentences)
    if section.headings:
        yield table(section.headings, section.rows, num_words=section.num_words)


def _cell(text: str) -> str:
    """Return *text* so that it stays within its cell and reads as written.

    An underscore inside a word, as in the name of an operator, marks nothing.
    """
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))
