"""Configuration files that a program ships: known though nobody sees them.

path inside the image or URL, table of such files -> Flags

A file of the same name on a volume or in a ConfigMap is somebody's own and never taken for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from admission.detect.configs import document_flags
from admission.detect.draft import Draft
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.by_recipe import with_config
from admission.detect.scripts.family import Call

_IN_IMAGE = "inside the image"


def is_in_image(call: Call, path: str) -> bool:
    """Return whether *path* is a file of the image, as far as is known."""
    return _IN_IMAGE in call.read_file(path).problem


def with_shipped(
    call: Call, draft: Draft, flag: Flag | None, files: Mapping[str, Any], *, name: str
) -> Flags:
    """Return the call's flags over the file that *flag* names: a seen one, or one of *files*.

    *files*: end of a path -> values; *name* is the program's. Another file is a gap.
    """
    word = flag.value if flag is not None else None
    if flag is not None and word is not None and word.is_known:
        values = _ending(word.text, files)
        if values is not None and is_in_image(call, word.text):
            told_by = f"{name} {word.text.rpartition('/')[2]}"
            return call.flags.over(document_flags(values, told_by=told_by, path=flag.field))
    return with_config(call, draft, flag)


def _ending(path: str, files: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the values of the shipped file whose name *path* ends with, folder by folder."""
    return next((values for end, values in files.items() if f"/{path}".endswith(f"/{end}")), None)
