"""What came of targets in several runs: a file with one line of JSON each.

Outcome -> a line at the end of the file -> the last Outcome of every target

Runs side by side may write to one file: a line is written at once.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from tests.fuzz.outcome import Finding, Outcome


def keep(outcome: Outcome, file: Path) -> None:
    """Put *outcome* at the end of *file*, which need not exist."""
    line = json.dumps(dataclasses.asdict(outcome)) + "\n"
    with file.open("a", encoding="utf-8") as opened:
        opened.write(line)


def kept(file: Path) -> list[Outcome]:
    """Return the last outcome of every target in *file*, in the order of the first ones."""
    found: dict[str, Outcome] = {}
    for line in file.read_text("utf-8").splitlines():
        record = json.loads(line)
        record["findings"] = tuple(Finding(**each) for each in record["findings"])
        found[record["target"]] = Outcome(**record)
    return list(found.values())
