"""Which floors hold for a workload, and what they do to an estimate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from admission.floor import Floor
from admission.learning.deaths import Death
from admission.learning.fingerprint import fingerprint
from admission.learning.floors import Learnt, raised
from admission.learning.lesson import LEARNT, RETRY, Lesson, lesson_of
from admission.values import Workload
from estimator.units import GIB
from tests.builders import estimate, unit, workload

UNIT = unit()
FLOOR = Floor(
    container="train", nbytes=15 * GIB, gave=14 * GIB, card="Tesla-T4", when="2030-01-01T00:00:00Z"
)
PRINT = fingerprint(UNIT, workload(UNIT))


def known(*names: str, namespace: str = "default", text: str = PRINT) -> Learnt:
    """Return who knows one death under *names*."""
    return Learnt((Death(namespace=namespace, names=names, fingerprint=text, floor=FLOOR),))


def having(**metadata: Any) -> Workload:
    """Return the Job default/train with more metadata."""
    made = workload(UNIT)
    return replace(made, metadata={**made.metadata, **metadata})


def owned(kind: str, name: str) -> Workload:
    """Return a pod of a controller, with a variable that the controller set."""
    owner = {"kind": kind, "apiVersion": "batch/v1", "name": name, "controller": True}
    container = {**UNIT.container_spec, "env": [{"name": "RANK", "value": "0"}]}
    program = replace(UNIT.program, container=container)
    own = replace(UNIT, container_spec=container, program=program)
    return replace(
        workload(own, kind="Pod", controlled=True),
        metadata={"namespace": "default", "name": "train-0", "ownerReferences": [owner]},
    )


def test_a_job_of_the_same_name_and_containers_has_the_floor() -> None:
    """It is made anew."""
    assert known("Job.batch/train").floors(workload(UNIT)) == (FLOOR,)


@pytest.mark.parametrize(
    "learnt",
    [
        known("Job.batch/other"),
        known("Job.batch/train", namespace="team-b"),
        known("Job.batch/train", text="0000.."),
        known("CronJob.batch/train"),
        Learnt(),
    ],
    ids=["name", "namespace", "containers", "kind", "nothing"],
)
def test_any_other_has_none(learnt: Learnt) -> None:
    """A wrong one would cost somebody a larger card."""
    assert learnt.floors(workload(UNIT)) == (None,)


def test_a_generated_name_is_known_by_its_prefix() -> None:
    """At its CREATE it has no other."""
    made = having(generateName="train-")

    assert known("Job.batch/train-*").floors(made) == (FLOOR,)


def test_what_a_controller_made_is_known_by_it() -> None:
    """A pod of the Job that died, with what its controller adds."""
    assert known("Job.batch/train").floors(owned("Job", "train")) == (FLOOR,)
    assert known("Job.batch/train").floors(owned("Job", "other")) == (None,)


def test_an_object_that_says_so_itself_has_the_floor() -> None:
    """With the fingerprint of what it was learnt with."""
    notes = Lesson(floor=FLOOR, fingerprint=PRINT).annotations()

    assert Learnt().floors(having(annotations=dict(notes))) == (FLOOR,)
    assert Learnt().floors(having(annotations={RETRY: notes[RETRY]})) == (None,)


def test_what_was_changed_since_starts_afresh() -> None:
    """Though the annotations are still there."""
    notes = Lesson(floor=FLOOR, fingerprint="another").annotations()

    assert Learnt().floors(having(annotations=dict(notes))) == (None,)


@pytest.mark.parametrize(
    "notes",
    [
        {RETRY: "x", LEARNT: "{}"},
        {RETRY: "0", LEARNT: "{}"},
        {RETRY: "9" * 30, LEARNT: "{}"},
        {RETRY: "10", LEARNT: "["},
        {RETRY: "10", LEARNT: "[]"},
        {RETRY: 10, LEARNT: "{}"},
        {RETRY: "10", LEARNT: "x" * 100_000},
    ],
)
def test_annotations_that_make_no_sense_are_nothing(notes: dict[str, Any]) -> None:
    """Whoever wrote them."""
    assert lesson_of(notes) is None


def test_a_floor_raises_all_but_the_least() -> None:
    """`least` denies, so no death ever moves it; the parts still add up."""
    before = estimate(least=8 * GIB, enough=10 * GIB)

    after = raised(before, FLOOR)

    assert after.least == before.least
    assert after.enough.device_bytes == 15 * GIB
    assert after.peak.device_bytes == 15 * GIB
    assert after.most.device_bytes == 15 * GIB
    assert after.breakdown.total() == after.peak.device_bytes


def test_a_floor_below_the_estimate_changes_nothing() -> None:
    """The estimate knew."""
    before = estimate(least=20 * GIB)

    assert raised(before, FLOOR) == before
    assert raised(before, None) is before
