"""`vramgate estimate`: one spec, and many cases a line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from admission.cli import main
from admission.commands.estimate_cases import answer_cases
from admission.commands.estimate_table import estimate_text
from estimator.catalog import generic_device
from estimator.device import Device
from estimator.errors import EstimateTimeoutError
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.tracefile import Recording
from estimator.units import GIB, MIB
from tests.builders import estimate, spec_document


class SlowFirst:
    """Answers small batches later than large ones; a batch of 13 takes too long."""

    def __init__(self) -> None:
        self.num_running = 0
        self.most_running = 0

    async def estimate(
        self, spec: JobSpec | Recording, devices: Sequence[Device]
    ) -> tuple[Estimate, ...]:
        """Return one estimate a device."""
        assert isinstance(spec, JobSpec)
        self.num_running += 1
        self.most_running = max(self.most_running, self.num_running)
        for _ in range(100 // spec.input.batch_size):
            await asyncio.sleep(0)
        self.num_running -= 1
        if spec.input.batch_size == 13:
            raise EstimateTimeoutError("the estimate took longer than its 60 s")
        return tuple(estimate(least=GIB, card=device, spec=spec) for device in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Nobody asks."""
        raise AssertionError(spec, devices)


def _line(name: str, batch_size: int = 1, **more: object) -> bytes:
    case = {"id": name, "spec": spec_document(batch_size=batch_size), **more}
    return json.dumps(case).encode() + b"\n"


async def _answers(
    lines: Sequence[bytes], estimator: SlowFirst | None = None
) -> list[dict[str, Any]]:
    answers = answer_cases(lines, estimator or SlowFirst(), device=generic_device(), window=3)
    return [answer async for answer in answers]


async def test_answers_come_in_the_order_of_the_lines() -> None:
    """A slow first case does not let the second overtake it."""
    answers = await _answers([_line("slow", 1), _line("quick", 100), _line("third", 50)])

    assert [answer["id"] for answer in answers] == ["slow", "quick", "third"]
    assert all(answer["estimate"]["kind"] == "Estimate" for answer in answers)


async def test_no_more_cases_are_under_way_than_the_window() -> None:
    """Memory does not grow with the number of lines."""
    estimator = SlowFirst()

    answers = await _answers([_line(str(index)) for index in range(20)], estimator)

    assert len(answers) == 20
    assert estimator.most_running == 3


async def test_an_answer_does_not_wait_for_the_next_line() -> None:
    """Whoever writes one line and waits for its answer before the next gets it."""
    answered: list[str] = []

    def lines() -> Iterator[bytes]:
        yield _line("first")
        while not answered:
            pass
        yield _line("second")

    answers: AsyncIterator[dict[str, Any]] = answer_cases(
        lines(), SlowFirst(), device=generic_device(), window=3
    )
    async for answer in answers:
        answered.append(answer["id"])

    assert answered == ["first", "second"]


async def test_a_case_may_name_its_card() -> None:
    """Without `gpu` the card of the command line is taken."""
    answers = await _answers([_line("a", gpu="t4"), _line("b")])

    assert [answer["estimate"]["device"]["name"] for answer in answers] == ["t4", "generic"]


@pytest.mark.parametrize(
    ("line", "name", "kind", "message"),
    [
        (b"{", None, "spec", "line 1: not JSON"),
        (b"[1]", None, "spec", "line 1: a case is a mapping"),
        (b'{"id": "a"}', "a", "spec", "line 1: spec: missing"),
        (b'{"id": 7, "spec": {}, "gpu": 4}', 7, "spec", "line 1: gpu: the name of a card"),
        (b'{"id": true, "spec": {}}', None, "spec", "line 1: id: a text or a whole number"),
        (b'{"id": {}, "spec": {}}', None, "spec", "line 1: id: "),
        (b'{"id": "a", "spec": {}, "gpus": "t4"}', "a", "spec", "line 1: gpus: unknown key"),
        (b'{"id": "a", "spec": {}}', "a", "spec", "framework: missing"),
        (_line("a", gpu="no such card"), "a", "spec", "not a known card"),
        (_line("a", 13), "a", "timeout", "longer than its 60 s"),
    ],
)
async def test_a_case_without_an_estimate_is_answered_with_the_kind_of_error(
    line: bytes, name: str | None, kind: str, message: str
) -> None:
    """A broken line is one error, and the lines after it are answered."""
    answer, after = await _answers([line, _line("after")])

    assert answer["id"] == name
    assert answer["error"]["kind"] == kind
    assert message in answer["error"]["message"]
    assert "estimate" in after


async def test_empty_lines_are_no_cases() -> None:
    """A file may end with empty lines."""
    assert await _answers([b"\n", _line("a"), b"  \n"]) == await _answers([_line("a")])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("framework: [", "not YAML or JSON"),
        ("framework: pytorch\n", "model: missing"),
        ("{}\n---\n{}\n", "2 documents, one is accepted"),
    ],
)
def test_a_broken_spec_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    """Exit status 2, the problem on standard error, nothing on standard output."""
    path = tmp_path / "spec.yaml"
    path.write_text(content)

    assert main(["estimate", str(path)]) == 2

    written = capsys.readouterr()
    assert written.err.startswith(f"vramgate: {path}: ")
    assert message in written.err
    assert "Traceback" not in written.err
    assert written.out == ""


@pytest.mark.parametrize("ending", ["", "---\napiVersion: v1\nkind: Service\n"])
def test_a_manifest_is_sent_to_the_other_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    """Someone who mixes the two up is not told of a dozen unknown keys."""
    path = tmp_path / "job.yaml"
    path.write_text(f"apiVersion: batch/v1\nkind: Job\nspec: {{}}\n{ending}")

    assert main(["estimate", str(path)]) == 2

    assert capsys.readouterr().err == (
        f"vramgate: {path}: this is a Kubernetes manifest: use `vramgate explain`\n"
    )


@pytest.mark.parametrize(
    "arguments", [["no-such-file.yaml"], ["-", "--gpu", "no-such-card"], ["-", "-o", "xml"]]
)
def test_bad_arguments_are_bad_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """A file that is not there, an unknown card and an unknown format end with status 2."""
    assert main(["estimate", *arguments]) == 2

    assert "Traceback" not in capsys.readouterr().err


def test_the_text_says_what_it_needs_and_where() -> None:
    """All four figures, the largest part first and the moment of the peak are shown."""
    console = Console(width=120)
    with console.capture() as capture:
        console.print(estimate_text(estimate(least=2 * GIB, enough=3 * GIB, activations=2 * GIB)))

    text = capture.get()

    for word in ("least", "enough", "peak", "most", "activations", "most allocated", "fits"):
        assert word in text


def test_small_parts_are_told_in_mebibytes() -> None:
    """8 MiB and a byte are 9 MiB and not 0.1 GiB; from 1 GiB on parts are in GiB."""
    found = estimate(least=3 * GIB)
    parts = {"parameters": 2 * GIB + 1, "workspace": 8 * MIB + 1, "inputs": GIB}
    found = found.model_copy(update={"breakdown": found.breakdown.model_copy(update=parts)})
    console = Console(width=120)
    with console.capture() as capture:
        console.print(estimate_text(found))

    text = capture.get()

    lines = [line.split()[:3] for line in text.splitlines()]
    for row in (["parameters", "2.1", "GiB"], ["workspace", "9", "MiB"], ["inputs", "1.0", "GiB"]):
        assert row in lines
    assert "below it the job certainly dies" in text


@pytest.mark.torch
@pytest.mark.slow
def test_a_spec_is_estimated_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two cards give a list, a bad line of many gives status 1."""
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec_document(batch_size=2)))
    cases = tmp_path / "cases.jsonl"
    cases.write_bytes(_line("good", 2, gpu="t4") + b"{\n")

    assert main(["estimate", str(path), "--gpu", "t4", "--gpu", "l4", "-o", "json"]) == 0
    documents = json.loads(capsys.readouterr().out)
    assert main(["estimate", str(cases), "-o", "jsonl"]) == 1
    written = capsys.readouterr()

    assert [document["device"]["name"] for document in documents] == ["t4", "l4"]
    lines = [json.loads(line) for line in written.out.splitlines()]
    assert lines[0]["estimate"]["peak"] == documents[0]["peak"]
    assert lines[1]["error"]["kind"] == "spec"
    assert written.err == "2 cases, 1 errors\n"
