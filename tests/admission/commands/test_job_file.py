"""What `vramgate estimate` and `account` take for a job."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from admission.cli import main
from admission.commands.job_file import followed, read_job
from estimator.errors import SpecError, UnsupportedJobError
from estimator.spec import JobSpec, parse_spec
from estimator.tracefile import Recording, recorded
from estimator.traits import traits_of
from tests.builders import job_spec, spec_document
from tests.estimator.stub import StubFrontend, card, spec_of


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    """Return a recording, written to `job.trace.gz` in the current folder."""
    monkeypatch.chdir(tmp_path)
    traits = traits_of(card())
    trace = StubFrontend().trace_job(spec_of(8), traits=traits)
    found = recorded(spec_of(8), traits=traits, trace=trace)
    Path("job.trace.gz").write_bytes(found.content)
    return found


def naming(name: str, *, batch_size: int = 8) -> JobSpec:
    """Return a JobSpec that names a Trace file."""
    return parse_spec(
        {
            "framework": "pytorch",
            "model": {"source": "trace", "name": name},
            "input": {"batchSize": batch_size},
        }
    )


def test_a_file_is_a_spec_or_a_trace_by_its_content(recording: Recording) -> None:
    """No ending of the name is asked for."""
    assert read_job(recording.content) == recording
    assert read_job(json.dumps(spec_document()).encode()) == job_spec()


def test_a_spec_may_name_a_trace_file(recording: Recording) -> None:
    """`model: {source: trace, name: PATH}`, from the current folder; other specs stay as is."""
    assert followed(naming("job.trace.gz")) == recording
    assert followed(job_spec()) == job_spec()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.trace.gz", "model.name: nowhere.trace.gz: No such file"),
        ("\0", "model.name: .*: no path"),
        (".", "model.name: .: Is a directory"),
        ("spec.json", "model.name: spec.json: not gzip"),
        ("/dev/zero", "model.name: /dev/zero: longer than"),
    ],
)
def test_a_named_file_that_is_no_trace_is_said_with_its_name(
    recording: Recording, name: str, message: str
) -> None:
    """The path of the problem is that of the spec."""
    Path("spec.json").write_text("{}")

    with pytest.raises(SpecError, match=message):
        followed(naming(name))


def test_a_url_is_not_read() -> None:
    """The contract has URLs, this version does not."""
    with pytest.raises(UnsupportedJobError, match="is a URL, which is not read yet"):
        followed(naming("https://example.com/job.trace.gz"))


def test_another_batch_than_the_recorded_one_is_refused(recording: Recording) -> None:
    """A Trace file answers for one job only."""
    with pytest.raises(SpecError, match=r"input.batchSize: 9 is not what was recorded: 8"):
        followed(naming("job.trace.gz", batch_size=9))


def test_a_trace_file_is_estimated_from_the_command_line(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its path, and by a case of many that names it; without importing a framework."""
    Path("cases.jsonl").write_text(
        "".join(
            json.dumps({"id": batch, "spec": naming("job.trace.gz", batch_size=batch).document()})
            + "\n"
            for batch in (8, 9)
        )
    )

    assert main(["estimate", "job.trace.gz", "-o", "json"]) == 0
    estimate = json.loads(capsys.readouterr().out)
    assert main(["estimate", "cases.jsonl", "-o", "jsonl"]) == 1
    good, bad = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert main(["account", "job.trace.gz", "-o", "json"]) == 0
    account = json.loads(capsys.readouterr().out)

    assert estimate["specDigest"] == recording.spec.digest()
    assert (good["estimate"]["peak"], bad["error"]["kind"]) == (estimate["peak"], "spec")
    assert account["usage"]["reservedBytes"] == estimate["peak"]["reservedBytes"]


def test_keys_of_somebody_elses_file_do_not_reach_the_terminal(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a terminal would obey is written out."""
    Path("job.trace.gz").write_bytes(gzip.compress(b'{"\\u001b[31mred": 1}'))

    assert main(["estimate", "job.trace.gz"]) == 2

    written = capsys.readouterr().err
    assert r"'\x1b[31mred': unknown key" in written
    assert "\x1b" not in written


def test_a_broken_trace_file_is_bad_input(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2 and one line with the name of the file."""
    Path("job.trace.gz").write_bytes(recording.content[:-20])

    assert main(["estimate", "job.trace.gz"]) == 2

    assert capsys.readouterr().err == "vramgate: job.trace.gz: ends early\n"
