"""What a model's name tells: a Hub id, or a path that only the container sees.

text -> Hub id | None
"""

from __future__ import annotations

_PATH_STARTS = ("/", "./", "../", "~", "s3:", "gs:", "hdfs:", "oss:", "file:", "http:", "https:")
_MAX_LENGTH = 200


def hub_id(text: str) -> str | None:
    """Return *text* as a Hub id (`gpt2`, `org/name`, `hf://org/name`), or None if it is a path."""
    name = text.removeprefix("hf://").strip()
    if not name or len(name) > _MAX_LENGTH or name.startswith(_PATH_STARTS):
        return None
    parts = name.split("/")
    if len(parts) > 2 or any(not part or part in (".", "..") for part in parts):
        return None
    allowed = name.replace("/", "").replace("-", "").replace("_", "").replace(".", "")
    return name if allowed.isalnum() and allowed.isascii() else None
