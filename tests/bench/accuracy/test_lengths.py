"""A length that nobody recorded is the one a single case told, and only where it was left out."""

from __future__ import annotations

from tests.bench.accuracy.cases import DATA, read_cases
from tests.bench.accuracy.fitted import fitted_ids, read_rules
from tests.bench.accuracy.lengths import FoundLength, read_lengths, with_length

FOUND = FoundLength(group="g", stated=768, taken=656, fitted="g/one")


def test_only_specs_with_the_stated_length_change() -> None:
    """Other groups and other lengths stay as they were published."""
    spec = {"input": {"batchSize": 4, "sequenceLength": 768}}

    assert with_length([FOUND], "g", spec)["input"] == {"batchSize": 4, "sequenceLength": 656}
    assert with_length([FOUND], "other", spec) is spec
    short = {"input": {"sequenceLength": 512}}
    assert with_length([FOUND], "g", short) is short


def test_the_case_that_told_a_length_is_not_quoted() -> None:
    """It is among the cases a constant was fitted on."""
    fitted = fitted_ids(read_rules(), read_cases())

    assert {length.fitted for length in read_lengths(DATA / "lengths.yaml")} <= fitted
