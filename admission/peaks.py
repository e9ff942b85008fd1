"""The annotation that keeps the peaks of a pod's containers.

    peaks <-> `vramgate.dev/peak-bytes`: {"container": {"gpu": bytes}} as JSON

Whoever may write the pod may write it too: what is read back is bounded, and held against the
cards there are before it counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from admission.steer.notes import PREFIX

ANNOTATION = f"{PREFIX}peak-bytes"
MAX_TEXT, MAX_PEAKS, MAX_BYTES = 32 << 10, 512, 1 << 50

Key = tuple[str, str]
"""Container, gpu."""
Peaks = Mapping[Key, int]


def written(peaks: Peaks) -> str:
    """Return the annotation's value, the same for the same peaks."""
    document: dict[str, dict[str, int]] = {}
    for (container, gpu), nbytes in sorted(peaks.items()):
        document.setdefault(container, {})[gpu] = nbytes
    return orjson.dumps(document).decode()


def read(text: str) -> dict[Key, int]:
    """Return the peaks in an annotation's value; none if it is not one of ours."""
    if len(text) > MAX_TEXT:
        return {}
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(document, dict):
        return {}
    found = {
        (container, gpu): nbytes
        for container, cards in document.items()
        if isinstance(cards, dict)
        for gpu, nbytes in cards.items()
        if type(nbytes) is int and 0 < nbytes < MAX_BYTES
    }
    return found if len(found) <= MAX_PEAKS else {}
