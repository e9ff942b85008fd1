"""Keep the CA in our registrations with the API server.

    CAs -> every ValidatingWebhookConfiguration and MutatingWebhookConfiguration of our names

Writes nothing but `caBundle`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import structlog

from admission.certificates.injection import injection
from admission.errors import ClusterError
from admission.objects import CONFLICT, Objects

GROUP = "/apis/admissionregistration.k8s.io/v1"
PLURALS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
ATTEMPTS = 5

_log = structlog.get_logger()


class Outcome(Enum):
    """How one registration was found, and left."""

    HAS = auto()
    CHANGED = auto()
    ABSENT = auto()
    UNSEEN = auto()
    """It could not be read."""
    LACKS = auto()
    """It could be read, and not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """How all registrations were found, and left."""

    outcomes: Mapping[tuple[str, str], Outcome]
    """By name and plural."""
    refusals: Mapping[str, ClusterError]
    """By plural and name, why one could not be read or written."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names that no registration has."""
        names = dict.fromkeys(name for name, _ in self.outcomes)
        return tuple(
            name
            for name in names
            if all(self.outcomes[name, plural] is Outcome.ABSENT for plural in PLURALS)
        )

    @property
    def is_complete(self) -> bool | None:
        """Return whether every registration has the CAs; None where that could not be seen."""
        found = set(self.outcomes.values())
        if self.missing or Outcome.LACKS in found:
            return False
        return None if Outcome.UNSEEN in found else True

    @property
    def has_changed(self) -> bool:
        """Return whether one did not have the CAs a moment ago."""
        return Outcome.CHANGED in self.outcomes.values()


class Registrations:
    """The registrations of our names, of both kinds."""

    def __init__(
        self,
        objects: Objects,
        names: Sequence[str],
        *,
        injected: Callable[[], None] = lambda: None,
    ) -> None:
        """*injected* is told of each registration that was given what it lacked."""
        self._objects = objects
        self._injected = injected
        self._names = tuple(dict.fromkeys(names))

    def places(self) -> tuple[tuple[str, str], ...]:
        """Return the name and the collection's path of all that may be there."""
        return tuple((name, f"{GROUP}/{plural}") for name in self._names for plural in PLURALS)

    def inject(self, bundle: bytes) -> Injected:
        """Give every webhook the *bundle*; return how that went. Never raises."""
        outcomes: dict[tuple[str, str], Outcome] = {}
        refusals: dict[str, ClusterError] = {}
        for name in self._names:
            for plural in PLURALS:
                outcome, refusal = self._inject(f"{GROUP}/{plural}/{name}", bundle)
                outcomes[name, plural] = outcome
                if refusal is not None:
                    refusals[f"{plural}/{name}"] = refusal
        return Injected(outcomes=outcomes, refusals=refusals)

    def _inject(self, path: str, bundle: bytes) -> tuple[Outcome, ClusterError | None]:
        for _ in range(ATTEMPTS):
            try:
                configuration = self._objects.read(path).document
            except ClusterError as error:
                return Outcome.UNSEEN, error
            if configuration is None:
                return Outcome.ABSENT, None
            changes = injection(configuration, bundle)
            if changes is None:
                return Outcome.HAS, None
            try:
                self._objects.patch(path, changes)
            except ClusterError as error:
                if error.status != CONFLICT:
                    return Outcome.LACKS, error
                continue
            _log.info("ca bundle injected", registration=path.removeprefix(f"{GROUP}/"))
            self._injected()
            return Outcome.CHANGED, None
        return Outcome.LACKS, ClusterError(CONFLICT)
