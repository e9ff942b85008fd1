"""Cases a constant was fitted on are told apart from those it is quoted over."""

from __future__ import annotations

from tests.bench.accuracy.builders import case_of, erring
from tests.bench.accuracy.cases import read_cases
from tests.bench.accuracy.fitted import Rule, fitted_ids, read_rules
from tests.bench.accuracy.targets import quoted


def rule(**more: object) -> Rule:
    """Return a rule for group g."""
    return Rule(constant="c", where="w", group="g", **more)  # type: ignore[arg-type]


def test_a_rule_takes_every_nth_case_of_its_group() -> None:
    """Counted within the group, in the order of the file."""
    cases = [case_of(f"{group}/{index}") for index in range(6) for group in ("g", "other")]

    assert fitted_ids([rule(start=1, step=2)], cases) == {"g/1", "g/3", "g/5"}


def test_a_rule_may_be_for_some_models_and_batches() -> None:
    """Only names that match and batches up to the largest."""
    cases = [
        case_of("g/a", model="mobilenetv2_100", batch=16),
        case_of("g/b", model="mobilenetv2_100", batch=32),
        case_of("g/c", model="resnet50", batch=8),
    ]

    assert fitted_ids([rule(models=("mobile*",), largest_batch=16)], cases) == {"g/a"}


def test_every_rule_of_the_file_takes_cases() -> None:
    """A rule whose group or pattern is misspelt would hold nothing out."""
    cases = read_cases()

    assert all(one.takes(cases) for one in read_rules())


def test_a_group_is_quoted_over_its_held_out_cases() -> None:
    """Fitted ones are left out; where all were fitted, that is said."""
    held_out, fitted = erring("g/a", 0.5), erring("g/b", 0.0, is_fitted=True)

    assert quoted([held_out, fitted], "g") == ([held_out], "held-out, 1 of 1 answered")
    assert quoted([fitted], "g") == (
        [fitted],
        "all cases, a constant was fitted on each, 1 of 1 answered",
    )
