"""Two candidates for one Lease, and an API server between them."""

from __future__ import annotations

from typing import Any

from admission.controller.lease import Lease
from tests.admission.controller.cluster import Cluster

PATH = "/apis/coordination.k8s.io/v1/namespaces/x/leases/controller"
LENGTH = 15.0


class Clock:
    """A monotonic clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def lease(cluster: Cluster, clock: Clock, identity: str) -> Lease:
    """Return one candidate."""
    objects: Any = cluster
    return Lease(
        objects,
        namespace="x",
        name="controller",
        identity=identity,
        seconds=LENGTH,
        clock=clock,
    )


def test_the_first_holds_it_and_the_second_waits() -> None:
    """However often the second asks, while the first renews."""
    cluster, clock = Cluster(), Clock()
    first, second = lease(cluster, clock, "a"), lease(cluster, clock, "b")

    assert first.turn()
    for _ in range(10):
        clock.now += LENGTH / 3
        assert not second.turn()
        assert first.turn()


def test_one_that_was_killed_is_taken_over_from_after_its_length() -> None:
    """Counted from when the other last saw it change: the clocks of the two need not agree."""
    cluster = Cluster()
    first, clock = lease(cluster, Clock(), "a"), Clock()
    second = lease(cluster, clock, "b")
    first.turn()

    assert not second.turn()
    clock.now += LENGTH - 0.1
    assert not second.turn()
    clock.now += 0.1

    assert second.turn()
    assert cluster.objects[PATH]["spec"]["holderIdentity"] == "b"
    assert cluster.objects[PATH]["spec"]["leaseTransitions"] == 1


def test_one_that_cannot_renew_stops_before_another_may_begin() -> None:
    """An API server that is away takes it from its holder too."""
    cluster, clock = Cluster(), Clock()
    first = lease(cluster, clock, "a")
    first.turn()
    cluster.refused["get", PATH] = None

    clock.now += LENGTH - 0.1
    assert first.turn()
    clock.now += 0.1

    assert not first.turn()


def test_one_that_writes_meanwhile_wins() -> None:
    """The version that was read is named: of two who take it, one is refused."""
    cluster, clock = Cluster(), Clock()
    lease(cluster, clock, "gone").turn()
    second = lease(cluster, clock, "b")
    second.turn()
    clock.now += LENGTH

    def other(verb: str, path: str) -> None:
        cluster.before_write = lambda *_: None
        spec = {**cluster.objects[path]["spec"], "holderIdentity": "c"}
        cluster.put(path, {**cluster.objects[path], "spec": spec})

    cluster.before_write = other

    assert not second.turn()
    assert cluster.objects[PATH]["spec"]["holderIdentity"] == "c"


def test_one_that_ends_lets_the_next_begin_at_once() -> None:
    """A rolling update waits for nobody's Lease to run out."""
    cluster, clock = Cluster(), Clock()
    first, second = lease(cluster, clock, "a"), lease(cluster, clock, "b")
    first.turn()
    first.release()

    assert not first.is_held
    assert second.turn()


def test_a_lease_that_somebody_emptied_is_taken() -> None:
    """By hand, say: an empty spec is nobody's."""
    cluster, clock = Cluster(), Clock()
    cluster.put(PATH, {"metadata": {"name": "controller"}, "spec": {}})

    assert lease(cluster, clock, "a").turn()
