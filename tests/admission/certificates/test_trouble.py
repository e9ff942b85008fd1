"""What goes wrong is named once, costs nothing that is served, and mends itself."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import structlog

from admission.certificates.issuing import new_authority
from admission.certificates.keeper import LONGEST_PAUSE_SECONDS
from admission.certificates.problems import CertificateProblem
from tests.admission.certificates.cluster import (
    MUTATING,
    SECRET,
    START,
    VALIDATING,
    Cluster,
    kept_by,
    secret,
)
from tests.admission.certificates.replica import Replica, installed

NAMES = ("vramgate.vramgate-system.svc", "vramgate.vramgate-system.svc.cluster.local")
Lines = list[Any]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Collect the log."""
    with structlog.testing.capture_logs() as captured:
        yield captured


def test_damaged_secret_is_replaced_with_one_line(lines: Lines) -> None:
    """The line says what was broken; what was served is served on."""
    cluster, replica = installed()
    cluster.put(SECRET, secret({"tls.crt": "cnViYmlzaA==", "ca.key": "%"}))
    lines.clear()

    replica.turn()

    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert [line["event"] for line in warnings] == ["certificates written"]
    assert warnings[0]["cause"] == "it was damaged"
    assert warnings[0]["flaws"] == (
        "ca.key is not base64",
        "tls.crt and tls.key are no pair that can be served",
    )
    assert replica.is_ready


@pytest.mark.parametrize("status", [401, 403])
def test_secret_that_may_not_be_read_is_named_once_and_tried_again(
    lines: Lines, status: int
) -> None:
    """Health is answered meanwhile; with the role comes the certificate."""
    cluster = Cluster(VALIDATING)
    cluster.refused["get", SECRET] = status
    replica = Replica(cluster)

    pauses = [replica.turn() for _ in range(8)]

    assert replica.problems == {CertificateProblem.SECRET_FORBIDDEN}
    told = [line for line in lines if line["event"] == "certificate problem"]
    assert [line["problem"] for line in told] == ["secret-forbidden"]
    assert told[0]["reason"] == f"the Secret cannot be read: HTTP {status}"
    assert not replica.is_ready
    assert max(pauses) <= 1.5 * LONGEST_PAUSE_SECONDS
    assert pauses[0] <= 1.5

    cluster.refused.clear()
    replica.turn()

    assert replica.is_ready
    assert lines[-1] == {
        "event": "certificate problem over",
        "problem": "secret-forbidden",
        "log_level": "info",
    }


def test_secret_that_may_not_be_written_leaves_what_is_served() -> None:
    """The last ninety days of a certificate are there for somebody to notice."""
    cluster, replica = installed()
    before = replica.served
    cluster.refused["patch", SECRET] = 403
    cluster.wait(days=280)

    replica.turn()

    assert replica.problems == {CertificateProblem.SECRET_FORBIDDEN}
    assert replica.served == before
    assert replica.is_ready
    cluster.refused.clear()
    replica.turn()
    assert not replica.problems
    assert replica.served != before


def test_secret_that_may_not_be_made_is_not_served_from_memory() -> None:
    """Every replica would have a CA of its own, and take the registration from the others."""
    cluster = Cluster(VALIDATING)
    cluster.refused["create", SECRET] = 403
    replica = Replica(cluster)

    replica.turn()

    assert replica.keeper.certificate.served is None
    assert cluster.bundles(VALIDATING) == {None}
    assert replica.problems == {CertificateProblem.SECRET_FORBIDDEN}


@pytest.mark.parametrize("verb", ["get", "patch"])
def test_registration_that_is_forbidden_is_named_and_the_certificate_served(verb: str) -> None:
    """Whoever trusts the CA by other means is answered."""
    cluster = Cluster(VALIDATING)
    cluster.refused[verb, VALIDATING] = 403
    replica = Replica(cluster)

    replica.turn()

    assert replica.problems == {CertificateProblem.WEBHOOK_FORBIDDEN}
    assert replica.served
    reason = replica.keeper.not_ready()
    assert reason is not None
    assert "validatingwebhookconfigurations/vramgate cannot be given the CA: HTTP 403" in reason
    cluster.refused.clear()
    replica.turn()
    assert replica.is_ready


def test_api_server_that_is_away_changes_nothing(lines: Lines) -> None:
    """Ready replicas stay ready, say so once, and go on when it is back."""
    cluster, replica = installed()
    before = replica.served
    lines.clear()
    cluster.is_away = True

    for _ in range(5):
        cluster.wait(seconds=12)
        replica.turn()

    assert replica.problems == {CertificateProblem.API_SERVER}
    assert [line["event"] for line in lines] == ["certificate problem"]
    assert replica.is_ready
    assert replica.served == before
    cluster.is_away = False
    replica.turn()
    assert not replica.problems


@pytest.mark.parametrize("status", [500, 503, 429])
def test_api_server_in_trouble_is_one_that_is_away(status: int) -> None:
    """Its errors are not taken for a role that is missing."""
    cluster, replica = installed()
    cluster.refused["get", SECRET] = status

    replica.turn()

    assert replica.problems == {CertificateProblem.API_SERVER}
    assert replica.is_ready


def test_forbidden_secret_does_not_keep_the_ca_from_the_registration() -> None:
    """What is known is still put back where somebody wiped it."""
    cluster, replica = installed()
    cluster.refused["get", SECRET] = 403
    cluster.wipe(VALIDATING)

    replica.turn()

    assert cluster.bundles(VALIDATING) == {cluster.kept.pem}


def test_expired_certificate_that_cannot_be_renewed_is_served_and_named() -> None:
    """At the start, with a Secret that may not be written; then with the role all is well."""
    cluster = Cluster(VALIDATING)
    authority = new_authority(now=START)
    cluster.store(kept_by(authority, names=NAMES, now=START, days=10))
    cluster.wait(days=20)
    cluster.refused["patch", SECRET] = 403
    replica = Replica(cluster)

    replica.turn()

    assert replica.problems == {
        CertificateProblem.SECRET_FORBIDDEN,
        CertificateProblem.EXPIRED,
    }
    assert cluster.kept.leaf is not None
    assert replica.served == cluster.kept.leaf.certificate
    assert (replica.keeper.not_ready() or "").startswith("the certificate has expired")
    cluster.refused.clear()
    replica.turn()
    assert replica.is_ready
    assert not replica.problems


def test_expired_certificate_at_the_start_is_renewed() -> None:
    """By the same CA, which clients trust already."""
    cluster = Cluster(VALIDATING)
    authority = new_authority(now=START)
    cluster.store(kept_by(authority, names=NAMES, now=START, days=10))
    cluster.wait(days=20)
    replica = Replica(cluster)

    replica.turn()

    assert replica.is_ready
    assert cluster.kept.authority == authority
    assert replica.keeper.certificate.expires == START + timedelta(days=20 + 365)


def test_clock_of_the_api_server_counts_and_a_wrong_one_is_named() -> None:
    """A node that is a year ahead would take every certificate for expired, and renew for ever."""
    _, replica = installed()
    before = replica.served
    replica.skew = timedelta(days=400)

    replica.turn()

    assert replica.problems == {CertificateProblem.CLOCK}
    assert replica.served == before
    assert replica.is_ready


def test_no_line_holds_a_key(lines: Lines) -> None:
    """Not when certificates are made, renewed, damaged, refused or lost."""
    cluster, replica = installed()
    keys = []
    for act in (
        lambda: cluster.wait(days=300),
        lambda: cluster.put(SECRET, secret({**cluster.objects[SECRET]["data"], "tls.crt": ""})),
        lambda: cluster.objects.pop(SECRET),
        lambda: cluster.refused.update({("get", SECRET): 403}),
    ):
        for part in ("tls.key", "ca.key"):
            keys.append(cluster.objects[SECRET]["data"][part])
        act()
        replica.turn()

    written = repr(lines)
    assert len(lines) > 5
    assert "PRIVATE" not in written
    for key in keys:
        assert key[60:120] not in written


def test_fault_of_ours_is_a_problem_too() -> None:
    """It is told by its kind alone, and what is served is served on."""
    _, replica = installed()

    replica.keeper.failed(RuntimeError("with a key in it"))

    assert replica.problems == {CertificateProblem.FAULT}
    assert replica.is_ready


def test_hand_edited_ca_bundle_is_put_back_told_and_counted(lines: Lines) -> None:
    """One line and one count; what is served is the same."""
    cluster, replica = installed()
    before, num_before = replica.served, replica.num_injections
    lines.clear()
    edited = copy.deepcopy(cluster.objects[MUTATING])
    edited["webhooks"][0]["clientConfig"]["caBundle"] = "QUJD"
    cluster.put(MUTATING, edited)

    for _ in range(3):
        replica.turn()

    assert cluster.bundles(MUTATING) == {cluster.kept.pem}
    assert [(line["event"], line["registration"]) for line in lines] == [
        ("ca bundle injected", "mutatingwebhookconfigurations/vramgate")
    ]
    assert replica.num_injections == num_before + 1
    assert replica.served == before
    assert not replica.problems


def test_two_installs_with_one_registration_name_each_other_and_slow_down(lines: Lines) -> None:
    """Two releases of one name, each with a Secret of its own: neither can win, both say so."""
    cluster, first = installed()
    second = Replica(cluster, secret="certificates-of-another")
    lines.clear()

    for _ in range(6):
        for replica in (first, second):
            replica.turn()
            cluster.wait(seconds=1)

    for replica in (first, second):
        assert replica.problems == {CertificateProblem.WEBHOOK_CONTESTED}
        assert replica.served
    told = [line for line in lines if line["event"] == "certificate problem"]
    assert [line["problem"] for line in told] == ["webhook-contested"] * 2


def test_two_who_undo_each_other_slow_down() -> None:
    """Another controller has the same registration: that is named, and no race is run."""
    cluster, replica = installed()
    least = []
    for _ in range(5):
        cluster.wipe(VALIDATING)
        least.append(replica.keeper.turn().least)
        cluster.wait(seconds=1)

    assert least[:3] == [0, 0, 0]
    assert all(pause >= 0.5 for pause in least[3:])
    assert replica.problems == {CertificateProblem.WEBHOOK_CONTESTED}
    assert cluster.bundles(VALIDATING) == {cluster.kept.pem}

    cluster.wait(seconds=61)
    replica.turn()

    assert not replica.problems
