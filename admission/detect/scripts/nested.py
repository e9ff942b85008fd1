"""A mapping within a configuration, or on the command line as text.

flags named `deepspeed.zero_optimization.stage` -> flags, or one flag, without the part in front
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from admission.detect.configs import read_config
from admission.detect.files import File
from admission.detect.flags import Flag, Flags
from admission.detect.words import Word


def nested_flags(flags: Flags, name: str) -> Flags:
    """Return what is given below *name*: `fsdp_config.version` as `version`."""
    prefix = f"{name}."
    return Flags(
        given=tuple(
            replace(flag, name=flag.name.removeprefix(prefix))
            for flag in flags.given
            if flag.name.startswith(prefix)
        )
    )


def mapping_of(flags: Flags, name: str) -> Flag | None:
    """Return what a file says below *name* as one flag that holds it all as text, or None."""
    nested = nested_flags(flags, name)
    if not nested.given:
        return None
    document: dict[str, Any] = {}
    for flag in nested.given:
        *parents, key = flag.name.split(".")
        part = document
        for parent in parents:
            inner = part.setdefault(parent, {})
            part = inner if isinstance(inner, dict) else {}
        part[key] = _scalar(flag.value.text if flag.value is not None else "")
    first = nested.given[0]
    return replace(first, name=name, spelling=name, values=(Word(text=json.dumps(document)),))


def mapping_text(flag: Flag | None) -> Mapping[str, Any] | None:
    """Return the mapping that *flag*'s text is, `{"use_reentrant": false}`, or None."""
    word = flag.value if flag is not None else None
    if word is None or not word.text.lstrip().startswith("{"):
        return None
    config = read_config(File(path="", text=word.text))
    return None if config.problem else config.document


def _scalar(text: str) -> Any:
    """Return the number or truth that *text* is, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
