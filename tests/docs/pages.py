"""What stands in the pages: code blocks, and the files and commands a reader is told of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SAVED = re.compile(r"Save this as `(?P<name>[\w.-]+)`:\s*\Z")
_STATUS = re.compile(r"\s+# exit (?P<status>\d)$")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block, and the text in front of it."""

    language: str
    text: str
    before: str


@dataclass(frozen=True, slots=True)
class Step:
    """What a reader does next: a file to save, or a command with the status it ends with."""

    file: str = ""
    text: str = ""
    command: str = ""
    status: int = 0


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [
        Block(found["language"], found["text"], text[: found.start()])
        for found in _BLOCK.finditer(text)
    ]


def steps(page: str) -> Iterator[Step]:
    """Yield what a reader of *page* does, in order."""
    for block in blocks(page):
        saved = _SAVED.search(block.before)
        if saved is not None:
            yield Step(file=saved["name"], text=block.text)
        if block.language != "console":
            continue
        for line in block.text.splitlines():
            if line.startswith("$ "):
                status = _STATUS.search(line)
                yield Step(
                    command=_STATUS.sub("", line.removeprefix("$ ")),
                    status=int(status["status"]) if status else 0,
                )
