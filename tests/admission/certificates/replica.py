"""One replica of the webhook with its keeper, by a clock that is moved by hand."""

from __future__ import annotations

from datetime import timedelta

from admission.certificate_settings import CertificateSettings, SecretPlace
from admission.certificates.keeper import Keeper
from admission.certificates.problems import CertificateProblem, Telling
from tests.admission.certificates.cluster import (
    MUTATING,
    START,
    VALIDATING,
    Cluster,
)

PROPAGATION_SECONDS = 60.0


class Replica:
    """One keeper, with a clock that goes with the cluster's, and what it told."""

    def __init__(self, cluster: Cluster, *, secret: str = "vramgate-certificates") -> None:
        self.cluster = cluster
        self.skew = timedelta()
        self.problems: frozenset[CertificateProblem] = frozenset()
        self.num_injections = 0
        self.keeper = Keeper(
            cluster,
            CertificateSettings(
                propagation_seconds=PROPAGATION_SECONDS, secret=SecretPlace(name=secret)
            ),
            tell=Telling(problems=self._told, injected=self._count_injection),
            clock=lambda: cluster.now + self.skew,
            monotonic=lambda: (cluster.now - START).total_seconds(),
        )

    def _told(self, problems: frozenset[CertificateProblem]) -> None:
        self.problems = problems

    def _count_injection(self) -> None:
        self.num_injections += 1

    def turn(self) -> float:
        """Take a turn; return the longest wait for the next."""
        return self.keeper.turn().most

    @property
    def served(self) -> bytes:
        """Return the certificate that is served."""
        assert self.keeper.certificate.served is not None
        return self.keeper.certificate.served

    @property
    def is_ready(self) -> bool:
        """Return whether the API server can call it."""
        return self.keeper.not_ready() is None


def installed() -> tuple[Cluster, Replica]:
    """Return a cluster with both registrations, and a replica that is ready."""
    cluster = Cluster(VALIDATING, MUTATING)
    replica = Replica(cluster)
    replica.turn()
    assert replica.is_ready
    return cluster, replica
