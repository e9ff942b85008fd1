"""Estimates with what was measured put into them."""

from __future__ import annotations

import pytest

from admission.learning.corrections import NOTHING, Corrections, corrections_of
from admission.learning.residuals import Correction, Group
from estimator.result import Estimate
from estimator.units import GIB
from tests.admission.learning.test_residuals import honest
from tests.builders import estimate

LEAST, PEAK, MOST = 8 * GIB, 10 * GIB, 12 * GIB


def estimated(version: str | None = "2.6.0+cu126") -> Estimate:
    """Return an estimate with room on both sides of its peak."""
    made = estimate(least=LEAST, enough=PEAK, activations=4 * GIB)
    said = {} if version is None else {"frameworkVersion": version}
    made = made.model_copy(update={"spec": {**made.spec, **said}})
    most = made.most.model_copy(update={"device_bytes": MOST, "reserved_bytes": MOST})
    return made.model_copy(update={"most": most})


def group(version: str = "2.6") -> Group:
    """Return the group of `estimated`."""
    name = estimated().device.name
    return Group(framework="pytorch", method="trace", product=name, version=version)


def corrections(ratio: float, *, version: str = "2.6", namespaces: int = 4) -> Corrections:
    """Return what jobs of that ratio teach."""
    return corrections_of({group(version): tuple(honest(ratio, namespaces=namespaces))})


def test_nothing_learnt_changes_nothing() -> None:
    """Not even a copy is made: every review asks."""
    made = estimated()

    assert NOTHING.corrected(made) is made
    assert corrections(1.2, namespaces=1).corrected(made) is made


def test_the_need_stays_whatever_was_measured() -> None:
    """A measured peak is what a job took where it had room: nobody is denied or let in by it."""
    made = estimated()
    for ratio in (0.5, 0.9, 1.1, 2.0):
        after = corrections(ratio).corrected(made)
        assert (after.least, after.enough) == (made.least, made.enough)
        assert after.least.device_bytes <= after.peak.device_bytes <= after.most.device_bytes
        assert after.breakdown.total() == after.peak.device_bytes
        assert all(
            getattr(after.breakdown, name) >= 0 for name in type(after.breakdown).model_fields
        )


def test_peak_and_most_follow_what_was_measured() -> None:
    """And it is said, with how many jobs it rests on."""
    after = corrections(1.1).corrected(estimated())

    assert after.peak.device_bytes == pytest.approx(1.1 * PEAK, rel=0.02)
    assert after.breakdown.other == after.peak.device_bytes - PEAK
    (note,) = (each for each in after.assumptions if each.code == "calibration")
    assert "24 jobs of 4 namespaces" in note.reason


def test_most_is_narrowed_only_so_far() -> None:
    """Half of what the estimator thought possible stays possible."""
    after = corrections(1.0).corrected(estimated())

    assert after.peak.device_bytes == PEAK
    assert after.most.device_bytes == PEAK + (MOST - PEAK) // 2


def test_few_jobs_widen_and_do_not_shift() -> None:
    """Two namespaces are enough to be more careful."""
    after = corrections(1.4, namespaces=2).corrected(estimated())

    assert after.peak.device_bytes == PEAK
    assert after.most.device_bytes > 1.3 * PEAK


def test_a_job_that_says_its_version_may_take_what_is_known_without_one() -> None:
    """And nothing of another version."""
    made = estimated()

    assert corrections(1.1, version="").corrected(made) is not made
    assert corrections(1.1, version="1.13").corrected(made) is made
    assert corrections(1.1).corrected(estimated(None)).peak == estimated(None).peak


def test_a_correction_without_room_is_none() -> None:
    """One job alone says nothing."""
    found = Correction(jobs=1, namespaces=1, median=1.5, upper=1.5, shift=1.0)

    assert not found.may_widen
    assert not found.may_shift
