"""What fuzzing keeps of what goes wrong, and what it says of it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from tests.fuzz.child import Watched
from tests.fuzz.choices import Choices
from tests.fuzz.outcome import Finding, Outcome
from tests.fuzz.results import keep, kept
from tests.fuzz.shaping import mutated
from tests.fuzz.stretching import is_square, pairs
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


def test_what_takes_the_square_of_its_length_is_told_from_what_takes_long() -> None:
    """Four times the length may take four times the time, or any time that is too short to tell."""
    assert is_square(0.1, 1.6)
    assert not is_square(0.1, 0.4)
    assert not is_square(0.001, 0.016)


def test_long_inputs_are_the_beginning_and_one_word() -> None:
    """The longer one has four times the length."""
    ((short, long),) = pairs([b"a: "], [b":1"])

    assert short.startswith(b"a: :1:1:1")
    assert len(long) == 4 * len(short)
    assert long[: len(short)] == short


def test_an_input_without_end_is_cut_and_kept(tmp_path: Path) -> None:
    """Also where the code between catches every exception."""

    def run(_: bytes) -> None:
        while True:
            with contextlib.suppress(Exception):
                pass

    target = Target(name="endless", run=run, seeds=lambda: (b"",), seconds=0.001)
    watched = Watched(target, report=tmp_path / "report.json", found=tmp_path / "found")

    watched.stretched(b"a", b"aaaa")

    findings = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert findings[0]["place"].startswith("Hung")


def _outcome(target: str, num_inputs: int, *findings: Finding) -> Outcome:
    return Outcome(
        target=target,
        seed=1,
        num_inputs=num_inputs,
        num_asked=100,
        coverage=5,
        slowest_seconds=0.001,
        mebibytes=1,
        peak_mebibytes=90,
        wall_seconds=2.0,
        findings=findings,
    )


def test_what_was_not_tried_is_no_success() -> None:
    """A child that ended early leaves a target that is not whole."""
    tried = _outcome("a", 10)

    assert not tried.is_whole
    assert tried.line.startswith("10 inputs in 2 s")
    assert tried.rate == 10 / 2


def test_several_runs_make_one_table(tmp_path: Path) -> None:
    """The last of each target, with what it found."""
    file = tmp_path / "results"
    finding = Finding(target="b", input="0815", place="slow", text="took 9.00 s of CPU")

    for outcome in (_outcome("a", 10), _outcome("b", 100, finding), _outcome("a", 100)):
        keep(outcome, file)

    assert kept(file) == [_outcome("a", 100), _outcome("b", 100, finding)]


def test_the_same_bytes_make_the_same_document() -> None:
    """And leave the one they began with as it was: a found input is found again."""
    document = {"spec": {"containers": [{"name": "a", "args": ["x", 1, None]}]}}
    before = json.dumps(document)
    for number in range(200):
        data = bytes((number, number * 7 % 256, 3, number * 11 % 256, 2, number))
        first, second = mutated(document, Choices(data)), mutated(document, Choices(data))
        assert repr(first) == repr(second)
    assert json.dumps(document) == before
