"""Leave not to be denied, until a moment.

    text <-> moment; who gave the leave, and why

Pure. Whether it still holds is for those to say who have a clock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
"""RFC 3339, `date-time`; not modelled: leap seconds (`:60`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """Why a verdict warns where it would deny."""

    until: datetime
    source: str
    """Who gave it: `settings`, or the annotation's name."""
    reason: str = ""

    @property
    def until_text(self) -> str:
        """Return the moment it ends, in UTC and to the second."""
        return moment_text(self.until)

    def sentence(self) -> str:
        """Return what the person is told beside the verdict."""
        why = f": {self.reason}" if self.reason else ""
        return f"exempt from denial until {self.until_text} (by {self.source}){why}"


def moment_of(text: str) -> datetime | None:
    """Return the moment that *text* names (RFC 3339, with its time zone), or None."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.upper())
        moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the 31st of February; a zone beyond the year 9999
        return None
    return moment


def moment_text(moment: datetime) -> str:
    """Return *moment* in UTC and to the second, as RFC 3339 has it."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
