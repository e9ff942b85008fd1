"""The annotations that keep what a death taught on the object itself.

    Lesson <-> `vramgate.dev/retry-min-bytes`, `vramgate.dev/retry-learnt`

Whoever may write the object may write them too: they raise what a job is taken to need, never more
than a card could hold, and deny nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from admission.floor import Floor

RETRY = "vramgate.dev/retry-min-bytes"
LEARNT = "vramgate.dev/retry-learnt"
MAX_TEXT, MAX_BYTES = 16 << 10, 1 << 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What one death taught."""

    floor: Floor
    fingerprint: str
    """Of the container that died, as its root describes it."""

    def annotations(self) -> Mapping[str, str]:
        """Return the annotations that say so."""
        document = {
            "container": self.floor.container,
            "card": self.floor.card,
            "gaveBytes": self.floor.gave,
            "when": self.floor.when,
            "fingerprint": self.fingerprint,
        }
        return {RETRY: str(self.floor.nbytes), LEARNT: orjson.dumps(document).decode()}


@dataclass(frozen=True, slots=True)
class _Text:
    """Fields of the second annotation, as far as they are texts."""

    fields: Mapping[str, object] = field(default_factory=dict)

    def of(self, key: str, *, limit: int = 1100) -> str:
        value = self.fields.get(key)
        return value[:limit] if isinstance(value, str) else ""


def lesson_of(annotations: Mapping[str, object]) -> Lesson | None:
    """Return what *annotations* say; None unless both are there and make sense."""
    number, text = annotations.get(RETRY), annotations.get(LEARNT)
    if not isinstance(number, str) or not isinstance(text, str) or len(text) > MAX_TEXT:
        return None
    nbytes = int(number) if number.isascii() and number.isdecimal() and len(number) < 20 else 0
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not 0 < nbytes < MAX_BYTES or not isinstance(document, dict):
        return None
    said, gave = _Text(document), document.get("gaveBytes")
    floor = Floor(
        container=said.of("container", limit=253),
        nbytes=nbytes,
        gave=gave if type(gave) is int and 0 <= gave < MAX_BYTES else 0,
        card=said.of("card", limit=253),
        when=said.of("when", limit=64),
    )
    return Lesson(floor=floor, fingerprint=said.of("fingerprint"))
