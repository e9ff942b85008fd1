"""Secret, registrations and served certificate are brought together and stay so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from admission.certificates.keeper import LOOK_SECONDS
from admission.certificates.kept import is_signed_by
from admission.certificates.problems import CertificateProblem
from tests.admission.certificates.cluster import (
    MUTATING,
    SECRET,
    START,
    VALIDATING,
    Cluster,
    secret,
)
from tests.admission.certificates.replica import Replica, installed


def test_install_becomes_ready_by_itself() -> None:
    """A Secret is made, both registrations get the CA, and the leaf is served."""
    cluster = Cluster(VALIDATING, MUTATING)
    replica = Replica(cluster)
    assert replica.keeper.not_ready() == "there is no certificate yet"

    pause = replica.turn()

    assert replica.is_ready
    assert not replica.problems
    assert cluster.objects[SECRET]["type"] == "kubernetes.io/tls"
    assert set(cluster.objects[SECRET]["data"]) == {"tls.crt", "tls.key", "ca.crt", "ca.key"}
    assert cluster.bundles(VALIDATING) == cluster.bundles(MUTATING) == {cluster.kept.pem}
    assert cluster.kept.leaf is not None
    assert replica.served == cluster.kept.leaf.certificate
    assert replica.keeper.certificate.expires == START + timedelta(days=365)
    assert pause >= 0.8 * LOOK_SECONDS


def test_turn_that_finds_all_well_writes_nothing() -> None:
    """Three replicas look every few minutes: that must cost nothing but reads."""
    cluster, replica = installed()
    cluster.writes.clear()

    for _ in range(3):
        cluster.wait(hours=1)
        replica.turn()

    assert cluster.writes == []


def test_two_installs_at_once_end_with_one_ca() -> None:
    """Who comes second reads what the first wrote, in the very same turn."""
    cluster = Cluster(VALIDATING)
    first, second = Replica(cluster), Replica(cluster)
    cluster.before_write = iter([first.turn])

    second.turn()
    first.turn()

    assert first.is_ready
    assert second.is_ready
    assert first.served == second.served
    assert [path for verb, path in cluster.writes if verb == "create"] == [SECRET]
    assert cluster.bundles(VALIDATING) == {cluster.kept.pem}
    assert len(cluster.kept.bundle) == 1


def test_of_two_who_renew_one_writes_and_both_serve_the_same() -> None:
    """The version that was read must be the one that is replaced."""
    cluster, first = installed()
    second = Replica(cluster)
    second.turn()
    cluster.wait(days=280)
    cluster.writes.clear()
    cluster.before_write = iter([first.turn])

    second.turn()

    assert cluster.writes == [("patch", SECRET)]
    assert first.served == second.served
    assert second.keeper.certificate.expires == START + timedelta(days=280 + 365)


def test_renewal_of_another_replica_is_served() -> None:
    """Nothing is restarted for it."""
    cluster, replica = installed()
    other = Replica(cluster)
    cluster.wait(days=280)
    other.turn()

    replica.turn()

    assert replica.served == other.served
    assert replica.is_ready


def test_what_others_put_into_the_secret_stays() -> None:
    """Labels of a chart, and its type, which cannot be changed."""
    cluster = Cluster(VALIDATING)
    cluster.put(SECRET, {**secret({"note": "bm90ZQ=="}), "type": "Opaque"})

    Replica(cluster).turn()

    found = cluster.objects[SECRET]
    assert (found["type"], found["metadata"]["labels"]) == ("Opaque", {"by": "somebody"})
    assert found["data"]["note"] == "bm90ZQ=="
    assert cluster.kept.leaf is not None


@pytest.mark.parametrize("path", [VALIDATING, MUTATING])
def test_wiped_ca_bundle_is_put_back(path: str) -> None:
    """`helm upgrade --force` takes it away; nothing else of the registration is touched."""
    cluster, replica = installed()
    before = cluster.objects[path]["webhooks"]
    cluster.wipe(path)

    replica.turn()

    assert cluster.objects[path]["webhooks"] == before
    assert replica.is_ready


def test_registration_that_changes_while_it_is_written_is_read_again() -> None:
    """Somebody who applies it at the same moment loses nothing, and we neither."""
    cluster = Cluster(VALIDATING)
    cluster.before_write = iter([lambda: None, lambda: cluster.wipe(VALIDATING)])
    replica = Replica(cluster)

    replica.turn()

    assert cluster.bundles(VALIDATING) == {cluster.kept.pem}
    assert replica.is_ready


@pytest.mark.parametrize("present", [(VALIDATING,), (MUTATING,)])
def test_one_registration_of_a_name_is_enough(present: tuple[str, ...]) -> None:
    """Who does not steer has no mutating one."""
    cluster = Cluster(*present)
    replica = Replica(cluster)

    replica.turn()

    assert replica.is_ready


def test_missing_registration_is_named_and_waited_for() -> None:
    """Not ready until the API server is told to call us; then at once."""
    cluster = Cluster()
    replica = Replica(cluster)
    pause = replica.turn()

    reason = replica.keeper.not_ready()
    assert reason is not None
    assert reason.startswith("caBundle is not injected yet: there is no registration named vram")
    assert replica.problems == {CertificateProblem.WEBHOOK_MISSING}
    assert pause <= 1.5
    cluster.wipe(VALIDATING)
    replica.turn()

    assert replica.is_ready
    assert not replica.problems


def test_deleted_secret_is_made_again_and_no_client_is_lost() -> None:
    """The old leaf is served until both CAs were trusted for a minute, then the new one."""
    cluster, replica = installed()
    old = replica.served
    del cluster.objects[SECRET]

    pauses = [replica.turn()]
    both = cluster.kept
    cluster.wait(seconds=59)
    pauses.append(replica.turn())
    during = replica.served
    cluster.wait(seconds=2)
    pauses.append(replica.turn())

    assert len(both.bundle) == 2
    assert cluster.bundles(VALIDATING) == {both.pem}
    assert during == old
    assert is_signed_by(replica.served, both.bundle[0])
    assert pauses[0] == pytest.approx(60.01)
    assert pauses[1] == pytest.approx(1.01)
    assert pauses[2] >= 0.8 * LOOK_SECONDS
    assert replica.is_ready


def test_wait_for_a_new_ca_begins_again_when_somebody_wipes_it() -> None:
    """An API server may have forgotten the new CA in between."""
    cluster, replica = installed()
    del cluster.objects[SECRET]
    replica.turn()
    old = replica.served
    cluster.wait(seconds=50)
    cluster.wipe(MUTATING)
    replica.turn()

    cluster.wait(seconds=50)
    replica.turn()
    after_fifty = replica.served
    cluster.wait(seconds=11)
    replica.turn()

    assert after_fifty == old
    assert replica.served != old
