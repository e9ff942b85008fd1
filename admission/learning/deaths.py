"""The deaths that are kept for jobs that are made anew: `deaths.json` of one ConfigMap.

    text <-> Deaths; Deaths, Death -> Deaths

Bounded in number, size and age. Of one job the last death counts, with the highest floor of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import orjson

from admission.floor import Floor
from admission.learning.fingerprint import MAX_TEXT
from admission.learning.lesson import MAX_BYTES
from admission.learning.version import VERSION

CONFIG_MAP = "vramgate-learned"
KEY = "deaths.json"
MAX_DEATHS = 500
MAX_SIZE = 256 << 10
"""Bytes of the text: a ConfigMap holds 1 MiB, and not ours alone."""
MAX_DAYS = 90
MAX_NAMES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """One job that died, by the names of all that its pod belonged to."""

    namespace: str
    names: tuple[str, ...]
    """`KIND.GROUP/NAME` of the pod's controllers, the root last; `PREFIX*` for generated names."""
    fingerprint: str
    floor: Floor

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return what is kept once."""
        return self.namespace, self.names[-1], self.floor.container, self.fingerprint


Deaths = tuple[Death, ...]
"""The newest last."""


def name_of(*, kind: str, api_version: str, name: str, generate_name: str = "") -> str:
    """Return how an object is named here: by its prefix, if its name was generated."""
    group = api_version.rpartition("/")[0]
    return f"{kind}.{group}/{f'{generate_name}*' if generate_name else name}"


def read_deaths(text: str) -> Deaths:
    """Return the deaths in *text*; what makes no sense is left out."""
    if len(text) > 4 * MAX_SIZE:
        return ()
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ()
    entries = document.get("deaths") if isinstance(document, dict) else None
    if not isinstance(entries, list) or document.get("version") != VERSION:
        return ()
    found = (_death(each) for each in entries[-MAX_DEATHS:] if isinstance(each, dict))
    return tuple(each for each in found if each is not None)


def with_death(deaths: Deaths, death: Death, *, now: datetime) -> Deaths:
    """Return *deaths* with *death*, without what is too old or too much."""
    before = next((each for each in deaths if each.key == death.key), None)
    if before is not None and before.floor.nbytes > death.floor.nbytes:
        death = replace(death, floor=replace(before.floor, when=death.floor.when))
    since = (now - timedelta(days=MAX_DAYS)).isoformat()
    kept = [each for each in deaths if each.key != death.key and each.floor.when >= since]
    kept = [*kept, death][-MAX_DEATHS:]
    while len(kept) > 1 and len(text_of(kept)) > MAX_SIZE:
        del kept[: max(1, len(kept) // 10)]
    return tuple(kept)


def text_of(deaths: Iterable[Death]) -> str:
    """Return *deaths* as the ConfigMap has them."""
    entries = [
        {
            "namespace": each.namespace,
            "names": list(each.names),
            "container": each.floor.container,
            "fingerprint": each.fingerprint,
            "floorBytes": each.floor.nbytes,
            "gaveBytes": each.floor.gave,
            "card": each.floor.card,
            "when": each.floor.when,
        }
        for each in deaths
    ]
    return orjson.dumps({"version": VERSION, "deaths": entries}).decode()


def _death(entry: Mapping[str, Any]) -> Death | None:
    texts = [
        str(entry.get(key) or "")
        for key in ("namespace", "container", "fingerprint", "card", "when")
    ]
    namespace, container, fingerprint, card, when = texts
    names = entry.get("names")
    nbytes, gave = entry.get("floorBytes"), entry.get("gaveBytes")
    if (
        not isinstance(names, list)
        or not 0 < len(names) <= MAX_NAMES
        or max(map(len, texts)) > MAX_TEXT
    ):
        return None
    if type(nbytes) is not int or not 0 < nbytes < MAX_BYTES or type(gave) is not int:
        return None
    floor = Floor(
        container=container, nbytes=nbytes, gave=min(max(0, gave), MAX_BYTES), card=card, when=when
    )
    return Death(
        namespace=namespace,
        names=tuple(str(each)[:600] for each in names),
        fingerprint=fingerprint,
        floor=floor,
    )
