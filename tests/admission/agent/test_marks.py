"""Marks only rise, outlive restarts, go with their pod, and are written seldom."""

from __future__ import annotations

from dataclasses import replace

from admission.agent.marks import LINGER_SECONDS, Ending, Marks, Note
from admission.agent.pods import Owner, Pod, Pods
from admission.peaks import Peaks, written
from estimator.units import GIB

POD = Pod(uid="u", namespace="n", name="p", estimate=10 * GIB)
ONE, TWO = "GPU-1", "GPU-2"
TOTALS = {ONE: 16 * GIB, TWO: 40 * GIB}


class Node:
    """Marks of a node with one pod, looked at once a second."""

    def __init__(self, pod: Pod = POD) -> None:
        self.marks = Marks(growth=0.05, seconds=60)
        self.pod: Pod | None = pod
        self.now = 1000.0

    def look(self, *, after: float = 1.0, **held: int) -> list[Ending]:
        """Let the container `main` hold so much: `GPU_1=GIB`."""
        self.now += after
        pods = Pods(by_uid={} if self.pod is None else {self.pod.uid: self.pod})
        endings = list(self.marks.follow(pods, now=self.now, totals=TOTALS))
        holds = {
            (Owner(uid="u", container="main"), k.replace("_", "-")): v for k, v in held.items()
        }
        self.marks.hold(holds, pods)
        return endings

    def write(self) -> list[Peaks]:
        """Write what is due, and return it."""
        notes = list(self.marks.due(self.now))
        for note in notes:
            self.marks.note_written(note)
        return [note.peaks for note in notes]

    @property
    def peaks(self) -> Peaks:
        """Return the marks of the pod."""
        return dict(next((peaks for _, peaks in self.marks.rows()), {}))


def test_mark_is_the_most_that_was_ever_held() -> None:
    """Of each card by itself; letting go takes nothing away."""
    node = Node()
    node.look(GPU_1=3 * GIB, GPU_2=GIB)
    node.look(GPU_1=2 * GIB, GPU_2=4 * GIB)
    node.look()

    assert node.peaks == {("main", ONE): 3 * GIB, ("main", TWO): 4 * GIB}


def test_mark_goes_with_its_pod() -> None:
    """A pod of the same name is another."""
    node = Node()
    node.look(GPU_1=3 * GIB)
    node.pod = None
    node.look()

    assert node.peaks == {}


def test_first_mark_is_written_at_once_and_growth_once_a_minute() -> None:
    """What grows by less than a twentieth is not written; writes are the API server's work."""
    node = Node()
    node.look(GPU_1=GIB)
    first = node.write()
    node.look(GPU_1=2 * GIB)
    at_once = node.write()
    node.look(after=60, GPU_1=2 * GIB)
    later = node.write()
    node.look(after=60, GPU_1=2 * GIB + GIB // 20)
    hardly = node.write()

    assert first == [{("main", ONE): GIB}]
    assert at_once == []
    assert later == [{("main", ONE): 2 * GIB}]
    assert hardly == []


def test_write_that_failed_is_due_again_a_minute_later() -> None:
    """And not before: an API server that refuses is not asked every second."""
    node = Node()
    node.look(GPU_1=GIB)
    assert len(list(node.marks.due(node.now))) == 1

    assert list(node.marks.due(node.now + 59)) == []
    assert len(list(node.marks.due(node.now + 60))) == 1


def test_growth_is_written_when_the_container_lets_go() -> None:
    """It may have died of it, and who looks after it does not wait for a minute."""
    node = Node()
    node.look(GPU_1=GIB)
    node.write()
    node.look(GPU_1=15 * GIB)
    assert node.write() == []
    node.look()

    assert node.write() == [{("main", ONE): 15 * GIB}]
    node.look()
    assert node.write() == []


def test_last_peak_is_written_as_the_pod_ends() -> None:
    """However little it grew: nothing comes after it."""
    node = Node()
    node.look(GPU_1=10 * GIB)
    node.write()
    node.look(GPU_1=10 * GIB + 1)
    node.pod = replace(POD, ended="failed")
    node.look()

    assert node.write() == [{("main", ONE): 10 * GIB + 1}]
    assert node.write() == []


def test_estimate_is_held_against_the_peak_once() -> None:
    """The larger card counts: an estimate is of one."""
    node = Node()
    node.look(GPU_1=3 * GIB, GPU_2=8 * GIB)
    node.pod = replace(POD, ended="succeeded")

    assert node.look() == [Ending(ended="succeeded", ratio=0.8)]
    assert node.look() == []


def test_pod_without_an_estimate_is_not_held_against_one() -> None:
    """Its marks are kept all the same."""
    node = Node(replace(POD, estimate=None))
    node.look(GPU_1=GIB)
    node.pod = replace(POD, estimate=None, ended="succeeded")

    assert node.look() == []
    assert node.peaks == {("main", ONE): GIB}


def test_marks_of_an_ended_pod_go_after_some_scrapes() -> None:
    """Ended pods may stay for weeks, and by the thousand; they do not come back."""
    node = Node()
    node.look(GPU_1=GIB)
    node.pod = replace(POD, ended="failed", peaks=written({("main", ONE): GIB}))
    node.look()
    node.look(after=LINGER_SECONDS - 1)
    assert node.peaks
    node.look(after=1)
    node.look()

    assert node.peaks == {}


def test_annotation_brings_back_the_mark() -> None:
    """And is not written again for the little that is held now."""
    node = Node(replace(POD, peaks=written({("main", ONE): 5 * GIB, ("main", TWO): GIB})))
    node.look(GPU_1=GIB)

    assert node.peaks == {("main", ONE): 5 * GIB, ("main", TWO): GIB}
    assert node.write() == []


def test_annotation_of_what_cannot_be_is_not_believed() -> None:
    """More than the card has, and cards that are not here: another node's, or made up."""
    forged = {("main", ONE): 17 * GIB, ("main", "GPU-9"): 1, ("main", TWO): GIB}
    node = Node(replace(POD, peaks=written(forged)))
    node.look()

    assert node.peaks == {("main", TWO): GIB}


def test_everything_is_written_at_the_end_of_the_agent() -> None:
    """What had not grown enough, or was written a moment ago."""
    node = Node()
    node.look(GPU_1=10 * GIB)
    node.write()
    node.look(GPU_1=10 * GIB + 1)

    (note,) = node.marks.unwritten(node.now)

    assert note == Note(pod=POD, peaks={("main", ONE): 10 * GIB + 1})
