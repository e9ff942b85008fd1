"""`vramgate account`: where reserved comes from, for people and programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from admission.cli import main
from admission.commands.account import account_markdown, account_text
from estimator.pipeline import Job
from estimator.report.job import account_on
from estimator.report.records import JobAccount
from tests.builders import spec_document
from tests.estimator.stub import StubFrontend, card, spec_of


def found() -> JobAccount:
    """Return the account of a job of one layer."""
    return account_on(Job(spec=spec_of(8), frontend=StubFrontend()), card())


def shown(account: JobAccount, *, top: int = 10) -> str:
    """Return what a person sees."""
    console = Console(width=120)
    with console.capture() as capture:
        for part in account_text(account, top=top):
            console.print(part)
    return capture.get()


def test_the_text_has_every_section_and_what_was_assumed() -> None:
    """The parts, the phases, the reasons, the takings."""
    text = shown(found())

    for word in (
        *("In short", "How reserved splits", "When it was taken", "Why nothing cached would do"),
        *("What the segments hold", "The 4 largest takings of 4", "step 1, backward", "assumed"),
    ):
        assert word in text


def test_a_person_chooses_how_many_takings_are_shown() -> None:
    """Nought leaves the list empty."""
    assert "The 1 largest takings of 4" in shown(found(), top=1)
    assert "The 0 largest takings of 4" in shown(found(), top=0)


def test_names_of_a_spec_do_not_reach_the_terminal_as_they_are() -> None:
    """A model or module whose name holds an escape sequence is shown without it."""
    account = found()
    row = account.account.rows[0]
    bad = row.model_copy(update={"at": row.at.model_copy(update={"module": "a\x1b[31mb"})})
    rows = (bad, *account.account.rows[1:])
    model = {**account.spec["model"], "name": "c\x1b]0;d\x07"}
    account = account.model_copy(
        update={
            "spec": {**account.spec, "model": model},
            "account": account.account.model_copy(update={"rows": rows}),
        }
    )

    for text in (shown(account), account_markdown(account, top=10)):
        assert "\x1b" not in text
        assert "in ab" in text


def test_the_markdown_begins_with_the_job() -> None:
    """A page of its own."""
    text = account_markdown(found(), top=1)

    assert text.startswith("# stub, batch 8, fp32, train on card\n\n## In short\n\n")


@pytest.mark.parametrize(
    "arguments",
    [["no-such-file.yaml"], ["-", "--gpu", "no-such-card"], ["-", "-o", "xml"], ["-", "--top=-1"]],
)
def test_bad_arguments_are_bad_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """Status 2, no traceback."""
    assert main(["account", *arguments]) == 2

    assert "Traceback" not in capsys.readouterr().err


def test_a_broken_spec_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The problem is on standard error, with the file's name."""
    path = tmp_path / "spec.yaml"
    path.write_text("framework: pytorch\n")

    assert main(["account", str(path)]) == 2

    assert capsys.readouterr().err.startswith(f"vramgate: {path}: ")


@pytest.mark.torch
@pytest.mark.slow
def test_an_account_is_that_of_the_estimate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through worker processes, with a real model: one peak, and rows that sum to it."""
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec_document(batch_size=2)))

    assert main(["account", str(path), "--gpu", "t4", "-o", "json"]) == 0
    account = json.loads(capsys.readouterr().out)
    assert main(["estimate", str(path), "--gpu", "t4", "-o", "json"]) == 0
    estimate = json.loads(capsys.readouterr().out)

    assert account["kind"] == "Account"
    assert account["usage"] == estimate["peak"]
    rows = account["account"]["rows"]
    assert sum(row["bytes"] for row in rows) == estimate["peak"]["reservedBytes"]
