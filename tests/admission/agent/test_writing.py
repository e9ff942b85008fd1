"""Peaks are written beside the looks, the newest of each pod, and a refusal is named."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest

from admission.agent.marks import Note
from admission.agent.pods import Pod
from admission.agent.problems import AgentProblem
from admission.agent.writing import FORGET_SECONDS, Writer, Written
from admission.errors import ClusterError
from admission.objects import Found
from admission.values import Json

WAIT_SECONDS = 10.0


class Objects:
    """Takes patches, or answers with a status."""

    def __init__(self) -> None:
        self.status: int | None = 200
        self.patched: queue.Queue[tuple[str, Json]] = queue.Queue()
        self.open = threading.Event()
        self.open.set()

    def patch(self, path: str, changes: Json) -> None:
        """Take a patch."""
        self.open.wait(WAIT_SECONDS)
        self.patched.put((path, changes))
        if self.status != 200:
            raise ClusterError(self.status)

    def read(self, path: str) -> Found:
        """Nothing is read."""
        raise AssertionError(path)

    def create(self, collection: str, document: Json) -> None:
        """Nothing is made."""
        raise AssertionError(collection, document)


class Writing:
    """A writer at work, and what it told."""

    def __init__(self) -> None:
        self.objects = Objects()
        self.now = 0.0
        self.outcomes: queue.Queue[Written] = queue.Queue()
        self.is_there = True
        self.writer = Writer(
            self.objects,
            tell=self.outcomes.put,
            is_there=lambda _: self.is_there,
            clock=lambda: self.now,
        )
        self.writer.start()

    def write(self, note: Note) -> Written:
        """Write *note* and return what became of it."""
        self.writer.give([note])
        return self.outcomes.get(timeout=WAIT_SECONDS)


@pytest.fixture
def writing() -> Iterator[Writing]:
    """A writer at work."""
    made = Writing()
    yield made
    made.objects.open.set()
    made.writer.stop(WAIT_SECONDS)


def note(name: str = "p", nbytes: int = 7) -> Note:
    """Return what is to be written on a pod."""
    pod = Pod(uid=f"uid-{name}", namespace="n", name=name)
    return Note(pod=pod, peaks={("main", "GPU-1"): nbytes})


def test_peaks_are_written_on_the_very_pod(writing: Writing) -> None:
    """With its UID, which another pod of the same name does not have."""
    outcome = writing.write(note())

    assert outcome is Written.DONE
    path, changes = writing.objects.patched.get_nowait()
    assert path == "/api/v1/namespaces/n/pods/p"
    annotations = {"vramgate.dev/peak-bytes": '{"main":{"GPU-1":7}}'}
    assert changes == {"metadata": {"uid": "uid-p", "annotations": annotations}}
    assert list(writing.writer.done()) == [note()]
    assert list(writing.writer.done()) == []


@pytest.mark.parametrize(
    ("status", "outcome", "problem"),
    [
        (403, Written.FAILED, AgentProblem.ANNOTATION_FORBIDDEN),
        (401, Written.FAILED, AgentProblem.ANNOTATION_FORBIDDEN),
        (422, Written.FAILED, AgentProblem.ANNOTATION_REFUSED),
        (None, Written.FAILED, AgentProblem.ANNOTATION_REFUSED),
        (404, Written.GONE, None),
        (409, Written.GONE, None),
    ],
)
def test_refusal_is_named_until_a_write_is_taken(
    writing: Writing, status: int | None, outcome: Written, problem: AgentProblem | None
) -> None:
    """A pod that is gone is no problem."""
    writing.objects.status = status
    assert writing.write(note()) is outcome
    assert list(writing.writer.problems()) == ([problem] if problem else [])
    assert list(writing.writer.done()) == []

    writing.objects.status = 200
    assert writing.write(note()) is Written.DONE
    assert writing.writer.problems() == {}


def test_refusal_for_a_pod_that_is_gone_is_no_problem(writing: Writing) -> None:
    """Another has its name by now, which the API server calls invalid."""
    writing.objects.status = 422
    writing.is_there = False

    assert writing.write(note()) is Written.GONE
    assert writing.writer.problems() == {}


def test_refusal_is_forgotten_when_nothing_is_tried_again(writing: Writing) -> None:
    """The pod that it was about is gone."""
    writing.objects.status = 500
    writing.write(note())
    writing.now = FORGET_SECONDS

    assert writing.writer.problems() == {}


def test_note_that_waits_gives_way_to_a_newer_one(writing: Writing) -> None:
    """An API server that is slow is sent the last word, not every word."""
    writing.objects.open.clear()
    writing.writer.give([note("first")])
    for nbytes in range(5):
        writing.writer.give([note("second", nbytes)])
    writing.objects.open.set()
    writing.writer.stop(WAIT_SECONDS)

    sent = [
        (path.rpartition("/")[2], changes["metadata"]["annotations"])
        for path, changes in writing.objects.patched.queue
    ]
    assert [name for name, _ in sent] == ["first", "second"]
    assert list(sent[-1][1].values()) == ['{"main":{"GPU-1":4}}']


def test_stop_writes_what_waits(writing: Writing) -> None:
    """What the agent knows at its end is on the pods."""
    writing.writer.give([note("a"), note("b")])
    writing.writer.stop(WAIT_SECONDS)

    assert writing.objects.patched.qsize() == 2
