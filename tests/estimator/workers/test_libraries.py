"""Which of several cuDNN libraries a fork is connected to."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.catalog import resolve_device
from estimator.cudnn.support import Release
from estimator.workers.libraries import rank

OLD = Release(version=91002, cuda=12)
MIDDLE = Release(version=91900, cuda=13)
NEW = Release(version=92600, cuda=13)
A100, V100 = resolve_device("a100-sxm4-80gb"), resolve_device("v100-sxm2-16gb")


def best(
    releases: Sequence[Release | None], *, wanted: int | None, volta: bool = False
) -> Release | None:
    """Return the one of *releases* that is taken."""
    devices = [A100, V100] if volta else [A100]
    return min(releases, key=lambda release: rank(release, devices, wanted))


def test_the_jobs_own_version_is_taken() -> None:
    """Wherever it stands."""
    assert best([NEW, MIDDLE, OLD], wanted=91002) == OLD
    assert best([OLD, MIDDLE, NEW], wanted=92600) == NEW


def test_the_closest_newer_version_stands_in() -> None:
    """9.1 cannot be asked, 9.20 is not there; of older ones the closest."""
    assert best([NEW, MIDDLE, OLD], wanted=90100) == OLD
    assert best([OLD, MIDDLE, NEW], wanted=92000) == NEW
    assert best([OLD, MIDDLE], wanted=92000) == MIDDLE


def test_cards_come_before_versions() -> None:
    """Only the build for CUDA 12 has answers for both."""
    assert best([NEW, OLD], wanted=92600, volta=True) == OLD


def test_without_a_version_the_first_is_taken() -> None:
    """The order of the folders decides."""
    assert best([MIDDLE, NEW, OLD], wanted=None) == MIDDLE


def test_a_library_that_is_not_loaded_waits_behind_those_that_answer() -> None:
    """It may hang or be none; it is tried where the loaded ones have no answers."""
    assert best([None, NEW], wanted=91002) == NEW
    assert rank(None, [V100], 91002) < rank(NEW, [V100], 91002)
