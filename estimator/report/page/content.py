"""What a page says: jobs, their verdicts, and the drawings that show them.

    estimates, judgements -> Page

Words that decide (verdict, message, changes) come from whoever judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from estimator.report.drawing import JobDrawing


class Tone(StrEnum):
    """How a verdict looks."""

    FITS = "fits"
    TIGHT = "tight"
    OOM = "oom"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card, or a class of nodes, a job was compared with."""

    name: str
    gives_bytes: int | None
    tone: Tone
    verdict: str
    least_bytes: int | None = None
    enough_bytes: int | None = None
    peak_bytes: int | None = None
    most_bytes: int | None = None
    count: int | None = None
    """Nodes that have it; None for a card that was only named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One job: a verdict in words, and its drawing if there is one."""

    title: str
    subtitle: str = ""
    tone: Tone
    verdict: str
    """A word or two."""
    message: str
    """One or two sentences: what it needs, what the cards give."""
    changes: tuple[str, ...] = ()
    """What would make it fit, each on its own."""
    cards: tuple[Card, ...] = ()
    drawing: JobDrawing | None = None
    remarks: tuple[str, ...] = ()
    """What is missing, and what else there is to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All jobs that were asked about."""

    title: str
    parts: tuple[Part, ...]
    version: str
