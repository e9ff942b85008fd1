"""Answers of commands for other programs: JSON or YAML on standard output."""

from __future__ import annotations

from enum import StrEnum

import orjson
import yaml


class Output(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


class Notation(StrEnum):
    """What an answer is written in."""

    JSON = "json"
    YAML = "yaml"


def write_entries(entries: object, notation: Notation) -> None:
    """Write *entries*, which are JSON types."""
    if notation is Notation.JSON:
        print(orjson.dumps(entries, option=orjson.OPT_INDENT_2).decode())
    else:
        # Read again, or YAML would write what stands twice as an anchor and an alias.
        copied = orjson.loads(orjson.dumps(entries))
        print(yaml.safe_dump(copied, sort_keys=False, allow_unicode=True), end="")
