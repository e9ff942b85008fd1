"""The article's table: every row is a valid job, and names a run that is there."""

from __future__ import annotations

from estimator.spec import parse_spec
from tests.bench.accuracy.article import article_questions, article_table, entries
from tests.bench.accuracy.cases import read_cases


def test_five_kinds_under_three_frameworks_but_for_bert_under_mxnet() -> None:
    found = entries()

    assert len(found) == 14
    assert {entry.kind for entry in found} == {"VGG16", "ResNet50", "InceptionV3", "LSTM", "BERT"}
    for entry in found:
        assert parse_spec(dict(entry.spec)).framework == entry.spec["framework"]


def test_the_runs_beside_them_are_cases() -> None:
    known = {case.id for case in read_cases()}
    assert {entry.case for entry in entries() if entry.case} <= known


def test_rows_without_an_answer_are_shown_as_such() -> None:
    found = entries()
    questions = article_questions(found)

    table = article_table(found, {}, [])

    assert len({each for question in questions for each in question.ids}) == len(found)
    assert table.count("\n") == len(found) + 1
    assert "–" in table
