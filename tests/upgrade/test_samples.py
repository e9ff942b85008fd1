"""What each release read or wrote is read still, and means the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from admission import peaks
from admission.config import load_settings
from admission.controller.moving import moving_of
from admission.learning import residuals_text
from admission.learning.deaths import KEY, read_deaths
from admission.learning.lesson import lesson_of
from admission.steer.terms import recorded
from estimator.result import Estimate
from estimator.spec import parse_spec
from estimator.tracefile import read_recording
from tests.admission.test_metrics_reference import documented
from tests.builders import estimate
from tests.upgrade.samples import (
    DEATH,
    FLOOR,
    GROUP,
    MOVE,
    PEAKS,
    SAMPLE,
    TERMS,
    Samples,
    events_of,
    releases,
    write,
)

of_each_release = pytest.mark.parametrize(
    "kept", releases(), ids=[each.folder.name for each in releases()]
)


def fields(document: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each field of a document, with the sort of its value."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield from fields(value, f"{path}.{key}")
    elif isinstance(document, list):
        for value in document:
            yield from fields(value, f"{path}[]")
    else:
        yield path, type(document).__name__


@of_each_release
def test_its_job_specs_are_accepted_and_say_the_same(kept: Samples) -> None:
    """What somebody wrote into an annotation or a file comes out as it was written."""
    jobs = kept.jobs()

    assert jobs
    assert [parse_spec(job).document() for job in jobs] == kept.json("jobs.json")


@of_each_release
def test_its_estimates_are_read_and_no_field_of_theirs_is_gone(kept: Samples) -> None:
    """Tools read them: a field may be added, none taken away or given another sort."""
    document = kept.json("estimate.json")

    assert Estimate.model_validate(document).document() == document
    today = dict(fields(estimate(least=10, enough=12, activations=5).document()))
    assert dict(fields(document)).items() <= today.items()


@of_each_release
def test_its_trace_files_are_estimated(kept: Samples) -> None:
    """Tensors, roles and events are the same ones, though a file has numbers for their names."""
    assert events_of(read_recording(kept.trace())) == kept.json("trace.json")


@of_each_release
def test_what_it_learned_is_known(kept: Samples) -> None:
    """The ConfigMap outlives the release that wrote it."""
    data = kept.json("learned.json")

    assert read_deaths(data[KEY]) == (DEATH,)
    assert residuals_text.read(data[residuals_text.KEY]) == {GROUP: (SAMPLE,)}


@of_each_release
def test_its_annotations_are_understood(kept: Samples) -> None:
    """Floors, our own terms, a move that is under way, peaks: on objects that were there before."""
    annotations: dict[str, Any] = kept.json("annotations.json")

    lesson = lesson_of(annotations)
    assert lesson is not None
    assert (lesson.floor, lesson.fingerprint) == (FLOOR, "a..b.")
    assert recorded({"annotations": annotations}) == TERMS
    assert moving_of(annotations) == MOVE
    assert peaks.read(annotations[peaks.ANNOTATION]) == PEAKS


@of_each_release
def test_its_settings_are_accepted(kept: Samples) -> None:
    """Every setting that there was is one still."""
    assert load_settings(kept.folder / "settings.yaml")


@of_each_release
def test_its_metrics_are_shown_with_their_labels(kept: Samples) -> None:
    """Somebody's rules and dashboards ask for them."""
    today = documented("Shown by serve") | documented("Not shown by serve")
    shown: dict[str, list[str]] = kept.json("metrics.json")

    assert shown
    gone = {name: set(labels) - today[name] for name, labels in shown.items()}
    assert not any(gone.values()), gone


def test_samples_are_written_once(tmp_path: Path) -> None:
    """`python -m tests.upgrade` writes all that is read here; those of a release never change."""
    folder = write(tmp_path)

    assert {path.name for path in folder.iterdir()} == {
        path.name for path in releases()[-1].folder.iterdir()
    }
    with pytest.raises(FileExistsError):
        write(tmp_path)
