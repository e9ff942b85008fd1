"""What is added to a pod spec to steer it, and how it is remembered.

    Terms <-> the text of an annotation on the pod template

The annotation alone tells our terms from a person's: theirs may look the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from admission.values import Json

RECORD = "vramgate.dev/steered"
"""Annotation on the pod template: what we added, so that we take out nothing else."""
MAX_RECORD = 16 << 10
"""Characters of an annotation that are read: ours have some hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Additions to one pod spec. Expressions and terms are Kubernetes' own."""

    required: tuple[Json, ...] = ()
    """Expressions that hold together: they go into every alternative."""
    preferred: tuple[Json, ...] = ()
    """Weighted terms."""
    selector: Json = field(default_factory=dict)
    """Labels, where a nodeSelector is all that may be changed."""

    def __bool__(self) -> bool:
        return bool(self.required or self.preferred or self.selector)

    def text(self) -> str:
        """Return the terms as the annotation has them."""
        parts = {
            "required": list(self.required),
            "preferred": list(self.preferred),
            "selector": dict(self.selector),
        }
        written = {key: value for key, value in parts.items() if value}
        return orjson.dumps(written, option=orjson.OPT_SORT_KEYS).decode()


NOTHING = Terms()


def recorded(metadata: Json) -> Terms:
    """Return what the annotation says that we added; nothing if it says anything else."""
    annotations = metadata.get("annotations")
    text = annotations.get(RECORD) if isinstance(annotations, Mapping) else None
    if not isinstance(text, str) or len(text) > MAX_RECORD:
        return NOTHING
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return NOTHING
    if not isinstance(document, dict):
        return NOTHING
    selector = document.get("selector")
    return Terms(
        required=_mappings(document.get("required")),
        preferred=_mappings(document.get("preferred")),
        selector=selector if isinstance(selector, dict) else {},
    )


def _mappings(value: Any) -> tuple[Json, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(item for item in value if isinstance(item, dict) and item)
