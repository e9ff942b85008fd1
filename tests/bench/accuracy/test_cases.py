"""The files of cases are what the report takes them for."""

from __future__ import annotations

from tests.bench.accuracy.cases import Metric, read_cases, read_outcomes
from tests.bench.accuracy.run import questions_of
from tests.bench.accuracy.selection import select
from tests.bench.accuracy.worst import read_notes


def test_the_files_are_sorted_and_no_id_is_there_twice() -> None:
    """Rules of every nth case, and the answers by id, rest on it."""
    ids = [case.id for case in read_cases()]
    others = [outcome.id for outcome in read_outcomes()]

    assert ids == sorted(set(ids))
    assert others == sorted(set(others))
    assert not set(ids) & set(others)


def test_only_device_readings_have_a_view() -> None:
    """What a meter saw of a card is a question of device readings alone."""
    assert all(
        (case.reading.view is not None) == (case.reading.metric is Metric.DEVICE)
        for case in read_cases()
    )


def test_every_note_is_of_a_case_that_exists() -> None:
    """A note under a misspelt id would never be read."""
    assert set(read_notes()) <= {case.id for case in read_cases()}


def test_a_job_asked_about_twice_is_estimated_once() -> None:
    """Runs of one job under several caps share the estimate."""
    outcomes = [one for one in read_outcomes() if one.id.startswith("xmem/distilgpt2")]

    (question,) = questions_of(outcomes)

    assert question.ids == tuple(one.id for one in outcomes)


def test_a_limit_takes_cases_from_all_over_the_selection() -> None:
    """A few stand for all: not the first ones of the alphabet."""
    cases = read_cases()
    timm = [case for case in cases if case.group == "timm-a100"]

    found = select(cases, groups=["timm-a100"], limit=3)

    assert [timm.index(case) for case in found] == [0, len(timm) // 3, 2 * len(timm) // 3]
