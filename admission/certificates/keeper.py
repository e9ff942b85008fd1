"""Bring the Secret, the registrations and what is served together.

    Secret -> Kept -> caBundle -> the certificate served; what is wrong, and when to look again

One turn at a time, as often as anybody likes: a turn that finds all well writes nothing.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from admission.certificate_settings import CertificateSettings
from admission.certificates.kept import Kept, is_valid_at
from admission.certificates.problems import TELL_NOBODY, CertificateProblem, Problems, Telling
from admission.certificates.registration import Injected, Registrations
from admission.certificates.renewal import awaits_trust, rules_of
from admission.certificates.secret import Agreement, KeptSecret
from admission.certificates.served import StoredCertificate
from admission.errors import ClusterError
from admission.objects import Objects

LOOK_SECONDS = 300.0
"""Changes are watched: this is for what nobody tells, the time that passes."""
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 15.0
CONTESTED_TIMES, CONTESTED_SECONDS = 4, 60.0
"""A `caBundle` that is taken away so often in so long is not an upgrade but another controller."""
MAX_SKEW = timedelta(minutes=5)
FORBIDDEN = (401, 403)

Found = dict[CertificateProblem, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """How long to wait for the next turn, in seconds."""

    most: float
    least: float = 0.0
    """Even if something changes: two who undo each other must not do it as fast as they can."""


class Keeper:
    """Looks after the certificates of one install; every replica has one, none leads."""

    def __init__(
        self,
        objects: Objects,
        settings: CertificateSettings,
        *,
        tell: Telling = TELL_NOBODY,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        rules = rules_of(settings)
        self._propagation_seconds = settings.propagation_seconds
        self._clock = clock
        self._monotonic = monotonic
        self.secret = KeptSecret(objects, settings.secret, rules)
        self.registrations = Registrations(objects, settings.webhooks, injected=tell.injected)
        self.certificate = StoredCertificate(rules.names[0])
        self._problems = Problems(tell.problems)
        self._kept = Kept()
        self._is_injected = False
        self._trusted: tuple[bytes, float] | None = None
        """The bundle that every registration has, and since when (monotonic)."""
        self._lost: deque[float] = deque(maxlen=CONTESTED_TIMES)
        """When a registration was last found without what it had (monotonic)."""
        self._pause = FIRST_PAUSE_SECONDS

    def not_ready(self) -> str | None:
        """Return why the API server cannot call us yet, or None.

        By what was last seen: an API server that is away does not change it.
        """
        leaf = self._kept.leaf
        if leaf is None:
            return self._because("there is no certificate yet")
        if self.certificate.served != leaf.certificate:
            return self._because("the stored certificate is not served yet")
        if CertificateProblem.EXPIRED in self._problems.now:
            return self._because("the certificate has expired")
        if not self._is_injected:
            return self._because("caBundle is not injected yet")
        return None

    def turn(self) -> Pause:
        """Look once and mend what can be; return when to look again. Blocks."""
        found: Found = {}
        self._keep(found)
        self._problems.settle(found)
        if found:
            pause = self._pause * random.uniform(0.5, 1.5)  # noqa: S311 (no secret)
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            is_contested = CertificateProblem.WEBHOOK_CONTESTED in found
            return Pause(most=pause, least=pause if is_contested else 0.0)
        self._pause = FIRST_PAUSE_SECONDS
        if self._trusted is not None and awaits_trust(self._kept):
            waited = self._monotonic() - self._trusted[1]
            return Pause(most=max(self._propagation_seconds - waited, 0.0) + 0.01)
        return Pause(most=LOOK_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311 (no secret)

    def failed(self, error: BaseException) -> None:
        """Say that a turn ended in a fault of ours."""
        self._problems.settle({CertificateProblem.FAULT: type(error).__name__})

    def _keep(self, found: Found) -> None:
        """Take what the Secret holds, make it trusted, then serve it: in this order."""
        try:
            agreement = self.secret.agree(before=self._kept, trusted=self._trusted_for_long())
        except ClusterError as error:
            _note(found, error, _SECRET, "the Secret cannot be read")
            # Nobody tells what holds now: what is known is put back where it is missing.
            if error.status in FORBIDDEN:
                self._inject(self._kept, found)
            self._tell_expiry(self._kept, self._clock(), found)
            return
        if agreement.refusal is not None:
            _note(found, agreement.refusal, _SECRET, "the Secret cannot be written")
        if abs(agreement.found.now - self._clock()) > MAX_SKEW:
            found[CertificateProblem.CLOCK] = f"the API server says {agreement.found.now}"
        self._take(agreement, found)
        self._tell_expiry(self._kept, agreement.found.now, found)

    def _take(self, agreement: Agreement, found: Found) -> None:
        kept = agreement.kept
        if kept.leaf is None or not kept.bundle:
            # Gone or damaged, and not to be mended: what was served is served on.
            kept = self._kept
        self._inject(kept, found)
        if kept.leaf is not None:
            self.certificate.serve(kept.leaf)
            self._kept = kept

    def _inject(self, kept: Kept, found: Found) -> None:
        if not kept.bundle:
            return
        injected = self.registrations.inject(kept.pem)
        for place, error in injected.refusals.items():
            _note(found, error, _WEBHOOK, f"{place} cannot be given the CA")
        if injected.missing:
            names = ", ".join(injected.missing)
            found[CertificateProblem.WEBHOOK_MISSING] = f"there is no registration named {names}"
        if injected.is_complete is not None:
            self._is_injected = injected.is_complete
        if injected.has_changed and self._trusted and self._trusted[0] == kept.pem:
            self._lost.append(self._monotonic())
        is_often = len(self._lost) == CONTESTED_TIMES
        if is_often and self._monotonic() - self._lost[0] < CONTESTED_SECONDS:
            reason = "somebody else writes another caBundle again and again"
            found[CertificateProblem.WEBHOOK_CONTESTED] = reason
        self._count_trust(kept.pem, injected)

    def _count_trust(self, bundle: bytes, injected: Injected) -> None:
        """Start to wait when a registration first has the bundle; again when one lacked it."""
        if not injected.is_complete:
            self._trusted = None
        elif injected.has_changed or self._trusted is None or self._trusted[0] != bundle:
            self._trusted = (bundle, self._monotonic())

    def _trusted_for_long(self) -> bytes | None:
        if self._trusted is None:
            return None
        bundle, since = self._trusted
        return bundle if self._monotonic() - since >= self._propagation_seconds else None

    def _tell_expiry(self, kept: Kept, now: datetime, found: Found) -> None:
        if kept.leaf is not None and not is_valid_at(kept.leaf.certificate, now):
            found[CertificateProblem.EXPIRED] = "the certificate is not valid at this time"

    def _because(self, what: str) -> str:
        reasons = "; ".join(self._problems.now.values())
        return f"{what}: {reasons}" if reasons else what


_SECRET = (CertificateProblem.SECRET_FORBIDDEN, CertificateProblem.SECRET_REFUSED)
_WEBHOOK = (CertificateProblem.WEBHOOK_FORBIDDEN, CertificateProblem.WEBHOOK_REFUSED)


def _note(
    found: Found,
    error: ClusterError,
    labels: tuple[CertificateProblem, CertificateProblem],
    what: str,
) -> None:
    """Remember one refusal under its label; the first of each is the one that is told."""
    forbidden, refused = labels
    if error.status is None or error.status >= 500 or error.status == 429:
        label = CertificateProblem.API_SERVER
    else:
        label = forbidden if error.status in FORBIDDEN else refused
    found.setdefault(label, f"{what}: {error.message}")
