"""The last denials that were withheld, for whoever means to enforce.

    Review, Judgement, moment -> entries -> JSON

In memory and bounded; every replica has its own. An object that is sent again counts on.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson

from admission.exemption import moment_text
from admission.plaintext import plain
from admission.values import Judgement, WorkloadRef

MAX_KEPT = 1000
"""Objects; one takes about 1 KiB."""
MAX_MESSAGE = 500


class Because(StrEnum):
    """What withheld a denial: a metric label too."""

    MODE = "mode-warn"
    EXEMPT = "exempt"


def because_of(judgement: Judgement) -> Because | None:
    """Return what alone kept *judgement* from being a denial, or None."""
    if not judgement.is_spared:
        return None
    return Because.EXEMPT if judgement.exemption is not None else Because.MODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """One object that would have been denied."""

    ref: WorkloadRef
    because: Because
    verdict: str
    reason: str
    message: str
    first: datetime
    last: datetime
    exempt_until: str = ""
    times: int = 1

    def document(self) -> dict[str, Any]:
        """Return the entry as JSON types."""
        entry: dict[str, Any] = {
            "namespace": self.ref.namespace,
            "kind": self.ref.kind,
            "name": self.ref.name,
            "because": self.because.value,
            "verdict": self.verdict,
            "reason": self.reason,
            "message": self.message,
            "first": moment_text(self.first),
            "last": moment_text(self.last),
            "times": self.times,
        }
        return entry | ({"exemptUntil": self.exempt_until} if self.exempt_until else {})


class WithheldDenials:
    """At most *kept* objects; the one that was seen longest ago makes room."""

    def __init__(self, *, now: Callable[[], datetime], kept: int = MAX_KEPT) -> None:
        self._now = now
        self._limit = kept
        self._since = now()
        self._kept: OrderedDict[tuple[str, ...], Withheld] = OrderedDict()
        self._num_forgotten = 0

    def add(self, judgement: Judgement, *, name: str) -> Because | None:
        """Remember *judgement* if its denial was withheld, and return what withheld it."""
        because = because_of(judgement)
        if because is None:
            return None
        ref = replace(judgement.workload.ref, name=plain(name, limit=253))
        now, exemption = self._now(), judgement.exemption
        key = (ref.namespace, ref.api_version, ref.kind, ref.name, because.value)
        before = self._kept.pop(key, None)
        self._kept[key] = Withheld(
            ref=ref,
            because=because,
            verdict=judgement.verdict.value,
            reason=judgement.reason,
            message=plain(judgement.message, limit=MAX_MESSAGE),
            first=before.first if before else now,
            last=now,
            exempt_until=exemption.until_text if exemption else "",
            times=before.times + 1 if before else 1,
        )
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)
            self._num_forgotten += 1
        return because

    def text(self) -> bytes:
        """Return the report that `/report` answers with: the newest first, and sums."""
        entries = [entry.document() for entry in reversed(self._kept.values())]
        sums = Counter(entry.ref.namespace for entry in self._kept.values())
        report = {
            "since": moment_text(self._since),
            "until": moment_text(self._now()),
            "limit": self._limit,
            "forgotten": self._num_forgotten,
            "namespaces": dict(sorted(sums.items())),
            "denials": entries,
        }
        return orjson.dumps(report, option=orjson.OPT_APPEND_NEWLINE)
