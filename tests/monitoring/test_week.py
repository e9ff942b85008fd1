"""The made-up week is the same each time, and looks like a cluster's."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tests.e2e.prometheus.week.backfill import series
from tests.e2e.prometheus.week.cluster import MINUTES, SEED, jobs
from tests.e2e.prometheus.week.series import Series, key, of_target, write
from tests.e2e.prometheus.week.serve import serve
from tests.monitoring.asked import asked, metrics_in

DAY = 24 * 60


@pytest.fixture(scope="module")
def week() -> tuple[Series, ...]:
    """Return every series."""
    return tuple(series())


def text_of(*shown: Series, since: int, until: int) -> str:
    """Return what is written of minutes."""
    file = io.StringIO()
    write(shown, file, start=0, since=since, until=until)
    return file.getvalue()


def test_same_seed_has_the_same_week(week: tuple[Series, ...]) -> None:
    """To the last sample of the webhook; another seed has others."""
    again = tuple(serve(jobs(SEED), SEED))

    for one, two in zip(week[: len(again)], again, strict=True):
        assert (one.name, one.labels) == (two.name, two.labels)
        assert np.array_equal(one.values, two.values)
    assert not np.array_equal(jobs(SEED + 1).at[:100], jobs(SEED).at[:100])


def test_working_days_are_busier_than_nights_and_week_ends() -> None:
    """Jobs come when people are there."""
    at = jobs().at
    day, hour = at // DAY, at % DAY // 60
    by_day = np.bincount(day, minlength=7)
    is_working = (day < 5) & (hour >= 9) & (hour < 17)
    is_night = (day < 5) & (hour < 6)

    assert by_day[:5].min() > 2 * by_day[5:].max()
    assert np.sum(is_working) / 8 > 5 * np.sum(is_night) / 6


def test_counters_only_grow(week: tuple[Series, ...]) -> None:
    """Nothing restarts in this week."""
    counters = [one for one in week if one.name.endswith(("_total", "_bucket", "_count"))]

    assert len(counters) > 1000
    for each in counters:
        if each.name != "vramgate_gpu_class_count":
            assert np.all(np.diff(each.values) >= 0), each.name


def test_week_has_every_metric_that_is_asked_for(week: tuple[Series, ...]) -> None:
    """A query of nothing would be fast."""
    names = {each.name for each in week}
    wanted = frozenset().union(*(metrics_in(query.expr) for query in asked()))

    for name in wanted:
        assert {name, f"{name}_bucket"} & names, name


def test_no_series_is_there_twice(week: tuple[Series, ...]) -> None:
    """Prometheus would take one sample of two."""
    found = {key(each.name, each.labels) for each in week}

    assert len(found) == len(week)


def test_samples_are_written_a_minute_apart() -> None:
    """Runs of one value, changes, and a series that is there for a while only."""
    steady = Series(name="a", labels={"x": "1"}, values=np.array([7, 7, 8, *[8] * (MINUTES - 3)]))
    short = Series(name="b", labels={}, values=np.array([1, 2]), begins=1)

    text = text_of(steady, short, since=1, until=4)

    assert text == ('a{x="1"} 7 60\na{x="1"} 8 120\na{x="1"} 8 180\nb{} 1 60\nb{} 2 120\n# EOF\n')


def test_what_no_process_shows_cannot_change() -> None:
    """A renamed metric or label is found here, not as an empty panel."""
    changes = {key("vramgate_gone_total", reason="a"): np.zeros(MINUTES, dtype=np.int64)}

    with pytest.raises(KeyError, match="vramgate_gone_total"):
        list(of_target("vramgate_here 1\n", changes, {}))
