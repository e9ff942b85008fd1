"""What a duty wants done, as values: said in an Event first, then written.

    duty -> Acts -> `acting`

An Event is named after its object, reason and cause: of two who say the same, and of one who was
killed and says it again, one is heard. What is written is such that writing it again changes
nothing, or is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from admission.controller.refs import Ref
from admission.learning.deaths import Death
from admission.learning.measured import Measured
from admission.values import Json

MAX_NOTE = 1000
"""Characters of an Event's message: the API server takes 1,024."""


class Reason(StrEnum):
    """Why the controller acts: the `reason` of its Events."""

    ESTIMATED = "GpuMemoryEstimated"
    """An estimate came after the object was admitted."""
    NOT_ESTIMATED = "GpuMemoryNotEstimated"
    """None came in time; the pod goes on as it is."""
    TOO_LARGE = "GpuMemoryTooLarge"
    """No card that it may use holds it."""
    STEERED = "GpuMemorySteered"
    CARD_MISSING = "GpuMemoryCardMissing"
    """It waits for a card that the cluster does not have free."""
    RELAXED = "GpuMemorySteeringRelaxed"
    WRONG_CARD = "GpuMemoryWrongCard"
    OUT_OF_MEMORY = "GpuOutOfMemory"
    CHECK_ACTIVE = "GpuMemoryCheckActive"
    """A queue's AdmissionCheck is answered from now on."""
    CHECKED = "GpuMemoryChecked"
    """The answer to a queue's AdmissionCheck."""
    REQUEUED = "GpuMemoryRequeued"
    """It died of out-of-memory, and goes back to its queue for a larger card."""
    MEASURED = "GpuMemoryMeasured"
    """What a job that succeeded took of a card, beside its estimate."""
    MOVED = "GpuMemoryMoved"
    NOT_MOVED = "GpuMemoryNotMoved"
    """It died of out-of-memory and nothing could be done; says what would fit."""


class Cause(StrEnum):
    """Why pods were moved: the labels of `vramgate_rescheduled_total`."""

    ESTIMATING = "estimating"
    LATE = "late"
    SUSPENDED = "suspended"
    STUCK = "stuck"
    WRONG_CARD = "wrong-card"
    OUT_OF_MEMORY = "out-of-memory"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """One death by lack of GPU memory: the labels of `vramgate_oom_total`."""

    framework: str
    predicted: bool | None
    """Whether the estimate said that the card might not do; None: there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misplaced:
    """One workload on, or for, a card that cannot hold it: of `vramgate_wrong_card_total`."""

    state: str
    """`pending` or `running`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """One Event."""

    about: Ref
    reason: Reason
    note: str
    """What people read; at most `MAX_NOTE` characters are shown."""
    cause: str = ""
    """What makes it another Event: a digest, a pod's UID and restart. Equal ones are told once."""
    is_warning: bool = False
    counts: Died | Misplaced | None = None
    """What is counted when this is told for the first time."""

    @property
    def name(self) -> str:
        """Return the Event's name."""
        told = "\0".join((self.about.uid, self.reason.value, self.cause))
        digest = hashlib.sha256(told.encode()).hexdigest()[:16]
        return f"{self.about.name[:200].rstrip('.-')}.{digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operate:
    """Apply JSON Patch operations, if the object is still the one with that UID."""

    on: Ref
    operations: Sequence[Json]
    subresource: str = ""
    """`status`, where that is what changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Merge changes (RFC 7386) into the object, if it is still the one with that UID."""

    on: Ref
    changes: Json
    subresource: str = ""
    """`status`, where that is what changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Delete the object, if it is still the one with that UID."""

    on: Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Learn:
    """Keep what a death taught for jobs that are made anew."""

    death: Death


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """Keep a measured peak for the estimates of others."""

    measured: Measured


Write = Operate | Merge | Remove | Learn | Remember


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What is told and written for one cause. Nothing is written without being told."""

    tell: Tell
    writes: tuple[Write, ...] = ()
    """In order; after one that fails none of the rest is tried."""
    cause: Cause | None = None
    """What is counted once all is written; None: nothing was moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a duty found: what to do now, and when to look again if nothing changes."""

    acts: tuple[Act, ...] = ()
    again_seconds: float | None = None


NOTHING = Look()
