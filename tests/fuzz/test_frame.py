"""What fuzzing keeps of what goes wrong, and what it says of it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fuzz.child import Watched
from tests.fuzz.choices import Choices
from tests.fuzz.outcome import Outcome
from tests.fuzz.shaping import mutated
from tests.fuzz.target import Target


def _run(data: bytes) -> None:
    if data.startswith(b"index"):
        raise IndexError(data)
    if data.startswith(b"key"):
        raise KeyError(data)


def test_an_input_of_each_place_is_kept_once(tmp_path: Path) -> None:
    """With the traceback, so that nobody has to run it again to see what it did."""
    target = Target(name="broken", run=_run, seeds=lambda: (b"",))
    watched = Watched(target, report=tmp_path / "report.json", found=tmp_path / "found")

    for data in (b"well", b"index 1", b"index 2", b"key 1", b"well"):
        watched(data)

    kept = sorted(path.read_bytes() for path in (tmp_path / "found").iterdir())
    assert kept == [b"index 1", b"key 1"]
    findings = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert [each["place"].split()[0] for each in findings] == ["IndexError", "KeyError"]
    assert "Traceback" in findings[0]["text"]


def test_a_slow_input_is_a_finding(tmp_path: Path) -> None:
    """Measured in time of the processor, which other processes do not take."""
    target = Target(name="slow", run=lambda _: None, seeds=lambda: (b"",), seconds=-1.0)
    watched = Watched(target, report=tmp_path / "report.json", found=tmp_path / "found")

    watched(b"x")

    (finding,) = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert finding["place"] == "slow"


def test_what_was_not_tried_is_no_success() -> None:
    """A child that ended early leaves a target that is not whole."""
    tried = Outcome(
        target="a",
        num_inputs=10,
        num_asked=100,
        coverage=5,
        slowest_seconds=0.001,
        mebibytes=1,
        wall_seconds=1.0,
        findings=(),
    )
    assert not tried.is_whole
    assert tried.line.startswith("10 inputs in 1 s")


def test_the_same_bytes_make_the_same_document() -> None:
    """And leave the one they began with as it was: a found input is found again."""
    document = {"spec": {"containers": [{"name": "a", "args": ["x", 1, None]}]}}
    before = json.dumps(document)
    for number in range(200):
        data = bytes((number, number * 7 % 256, 3, number * 11 % 256, 2, number))
        first, second = mutated(document, Choices(data)), mutated(document, Choices(data))
        assert repr(first) == repr(second)
    assert json.dumps(document) == before
