"""Two runs can be held against each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.accuracy.answers import NoAnswer
from tests.bench.accuracy.builders import answer_of, case_of, erring, scored_of
from tests.bench.accuracy.records import moves, read_answers, write_rows
from tests.bench.accuracy.run import Answers


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Answers and reasons survive the way through the file."""
    answers: Answers = {
        "g/a": answer_of(seconds=1.5, assumed=("context x: y",), workspace=3),
        "g/b": NoAnswer(kind="spec", message="unknown key"),
    }

    write_rows(tmp_path / "rows.jsonl", answers, [scored_of(case_of("g/a"), answer_of())])

    assert read_answers(tmp_path / "rows.jsonl") == answers


def test_the_cases_that_moved_are_named_the_farthest_first() -> None:
    """A case that lost its answer moved farthest; one that stayed is not named."""
    before = [erring("g/a", 0.1), erring("g/b", 0.1), erring("g/c", 0.1), erring("g/d", 0.1)]
    after = [erring("g/a", 0.1), erring("g/b", 0.2), scored_of(case_of("g/c")), erring("g/d", -0.2)]

    found = moves(before, after)

    assert [move.id for move in found] == ["g/c", "g/d", "g/b"]
    assert found[0].after is None
    assert found[1].size == pytest.approx(0.1 + 0.2)


def test_a_bound_that_moved_is_a_move() -> None:
    """The estimate stayed, `least` fell by a tenth of the reading."""
    case = case_of("g/a", nbytes=100)

    (found,) = moves(
        [scored_of(case, answer_of(least=(80, 80)))], [scored_of(case, answer_of(least=(70, 70)))]
    )

    assert found.size == pytest.approx(0.1)
