"""What a meter's zero already held is added to its readings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.accuracy.builders import answer_of, case_of
from tests.bench.accuracy.cases import DATA, read_cases
from tests.bench.accuracy.scoring import score
from tests.bench.accuracy.zero import Zero, lacking, read_zeroes

CONTEXT = Zero(group="g", lacks=("context",))
MODEL = Zero(group="g", lacks=("parameters",), model_source="torchvision")


@pytest.mark.parametrize(
    ("group", "source", "expected"),
    [
        ("g", "torchvision", ("context", "parameters")),
        ("g", "huggingface", ("context",)),
        ("other", "torchvision", ()),
    ],
)
def test_a_meter_is_of_one_group_and_may_be_of_some_models(
    group: str, source: str, expected: tuple[str, ...]
) -> None:
    """Parts of all meters that took the reading, in order."""
    assert lacking([CONTEXT, MODEL], group, {"model": {"source": source}}) == expected


def test_what_the_zero_held_stands_beside_the_reading() -> None:
    """The figures asked are of the reading as it was published."""
    case = case_of(nbytes=90)
    short = replace(case, reading=replace(case.reading, lacks=("context", "parameters")))

    found = score(short, answer_of(context=3, parameters=5, libraries=11))

    assert (found.measured, found.in_zero) == (90, 3 + 5)
    assert (found.estimated, found.least, found.most) == (100, 80, 120)
    assert found.signed_error == pytest.approx(100 / 90 - 1)
    assert found.error_of_whole == pytest.approx(100 / 98 - 1)


def test_a_part_that_no_estimate_has_is_refused(tmp_path: Path) -> None:
    """A misspelt part would otherwise fail at the first case, or be taken for nothing."""
    path = tmp_path / "zero.yaml"
    path.write_text("- {cases: {group: g}, lacks: [contxt]}", "utf-8")

    with pytest.raises(ValueError, match="contxt"):
        read_zeroes(path)


def test_every_meter_of_the_file_took_readings() -> None:
    """A group or source that is misspelt would change nothing."""
    cases = read_cases()

    for zero in read_zeroes(DATA / "zero.yaml"):
        assert any(zero.takes(case.group, case.spec) for case in cases)


def test_only_convolutional_runs_of_xmem_had_their_model_on_the_card() -> None:
    """The loop for language models waits for the meter."""
    short = {case.id: case.reading.lacks for case in read_cases() if case.reading.lacks}

    assert short["xmem/vgg19-adam-b339-rtx3060"] == ("context", "parameters")
    assert short["xmem/t5-small-adamw-b20-rtx3060"] == ("context",)
    assert all(name.startswith("xmem/") for name in short)
