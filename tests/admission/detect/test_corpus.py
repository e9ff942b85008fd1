"""The manifests of tests/corpus are read as a person reads them: key by key, nothing guessed."""

from __future__ import annotations

import pytest

from tests.bench.manifests.compare import Case, cases, outcome_of

CASES = tuple(cases())


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_manifest_is_read_as_expected(case: Case) -> None:
    """Every expected value, and no other."""
    outcome = outcome_of(case)

    assert (outcome.false, outcome.missing) == ((), ())


def test_the_corpus_is_whole() -> None:
    """64 manifests, of which 54 train on GPUs and 37 can be derived."""
    training = [case for case in CASES if case.expected["gpu_training"]]

    assert len(CASES) == 64
    assert len(training) == 54
    assert sum(case.expected["verdict_possible"] for case in training) == 37
