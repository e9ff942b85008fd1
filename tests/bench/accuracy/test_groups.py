"""Many scores become one line, and no case is left out silently."""

from __future__ import annotations

import pytest

from tests.bench.accuracy.builders import answer_of, case_of, erring, scored_of
from tests.bench.accuracy.cases import Metric, Quality, View
from tests.bench.accuracy.groups import Standing, quantile, standing, summary
from tests.bench.accuracy.tables import by_line


def test_the_figures_are_those_of_the_errors() -> None:
    """Median, quantiles and the share of under-estimates, of five errors."""
    errors = [-0.2, -0.1, 0.0, 0.3, 0.4]

    found = summary([erring(f"g/{index}", error) for index, error in enumerate(errors)])

    assert found.median_error == pytest.approx(0.2)
    assert found.mean_error == pytest.approx((0.2 + 0.1 + 0.0 + 0.3 + 0.4) / 5)
    assert found.p90_error == pytest.approx(0.3 + 0.6 * (0.4 - 0.3))
    assert found.middle_error == pytest.approx(0.0)
    assert found.low_error == pytest.approx(-0.2 + 0.4 * (0.2 - 0.1))
    assert found.under == 2 / 5


def test_p_fail_counts_both_sides() -> None:
    """A reading below `least` fails as one above `most` does."""
    rows = [
        scored_of(case_of(f"g/{size}", nbytes=size), answer_of(least=(80, 80)))
        for size in (79, 100, 110, 121)
    ]

    found = summary(rows)

    assert (found.failed, found.under_least, found.over_most) == (2 / 4, 1 / 4, 1 / 4)


def test_a_case_without_an_answer_is_counted_and_not_scored() -> None:
    """It is in the number of cases, and in no error."""
    found = summary([erring("g/a", 0.1), scored_of(case_of("g/b"))])

    assert (found.num_cases, found.num_unanswered) == (2, 1)
    assert found.median_error == pytest.approx(0.1)


def test_a_group_without_any_answer_has_no_figures() -> None:
    """No answer is not an error of nothing."""
    found = summary([scored_of(case_of())])

    assert (found.num_unanswered, found.median_error, found.failed) == (1, None, None)


def test_a_quantile_lies_between_two_values() -> None:
    """Linear between neighbours; the ends are the smallest and the largest."""
    assert [quantile([1.0, 2.0, 4.0], share) for share in (0.0, 0.75, 1.0)] == [1.0, 3.0, 4.0]


def test_metrics_and_views_and_standings_have_lines_of_their_own() -> None:
    """Reserved never meets device, and what is not expressed never meets what is."""
    rows = [
        scored_of(case_of("g/a", metric=Metric.RESERVED)),
        scored_of(case_of("g/b", view=View.CARD)),
        scored_of(case_of("g/c", view=View.PROCESS)),
        scored_of(case_of("g/d", view=View.CARD, quality=Quality.BANDED)),
        scored_of(case_of("g/e", view=View.CARD, unexpressed=("a tower",))),
    ]

    lines = [
        (line.metric, line.view, line.standing, [row.case.id for row in members])
        for line, members in by_line(rows)
    ]

    assert lines == [
        ("device", "card", "sharp", ["g/b"]),
        ("device", "card", "banded", ["g/d"]),
        ("device", "card", "unexpressed", ["g/e"]),
        ("device", "process", "sharp", ["g/c"]),
        ("reserved", "–", "sharp", ["g/a"]),
    ]


def test_what_is_unexpressed_is_so_even_if_banded() -> None:
    """The graver doubt names the line."""
    case = case_of(quality=Quality.BANDED, unexpressed=("a tower",))

    assert standing(case) is Standing.UNEXPRESSED
