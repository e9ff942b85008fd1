"""What keeps the certificates from being as they should, told once and again when it is over.

problems of a turn -> one log line each at the start and at the end, and a metric
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import structlog

_log = structlog.get_logger()


class CertificateProblem(StrEnum):
    """Labels of `vramgate_certificate_problems`: of built-in certificates, or of files."""

    API_SERVER = "api-server-away"
    SECRET_FORBIDDEN = "secret-forbidden"
    SECRET_REFUSED = "secret-refused"
    WEBHOOK_FORBIDDEN = "webhook-forbidden"
    WEBHOOK_REFUSED = "webhook-refused"
    WEBHOOK_MISSING = "webhook-missing"
    WEBHOOK_CONTESTED = "webhook-contested"
    """Somebody else writes another `caBundle` again and again."""
    EXPIRED = "expired"
    """What is served has expired, and nothing better can be had."""
    FILES_REFUSED = "files-refused"
    """The files that the settings name cannot be served: what was served is served on."""
    CLOCK = "clock-skew"
    """Our clock and the API server's are minutes apart."""
    FAULT = "fault"
    """Our own: tried again every minute."""


TellProblems = Callable[[frozenset[CertificateProblem]], None]
"""Told after every turn which problems there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """Who hears what becomes of certificates: the metrics."""

    problems: TellProblems = lambda _: None
    injected: Callable[[], None] = lambda: None
    """Told each time a registration was given the CA that it lacked."""


TELL_NOBODY = Telling()


class Problems:
    """Remembers which problems there were, so that each is told once."""

    def __init__(self, tell: TellProblems) -> None:
        self._tell = tell
        self.now: Mapping[CertificateProblem, str] = {}
        """What is wrong now, and why."""

    def settle(self, found: Mapping[CertificateProblem, str]) -> None:
        """Take *found* for all that is wrong from now on."""
        for problem, reason in found.items():
            if problem not in self.now:
                _log.error("certificate problem", problem=problem.value, reason=reason)
        for problem in self.now.keys() - found.keys():
            _log.info("certificate problem over", problem=problem.value)
        self.now = dict(found)
        self._tell(frozenset(found))
