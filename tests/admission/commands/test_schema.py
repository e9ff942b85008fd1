"""`vramgate schema` prints what is accepted and what is written."""

from __future__ import annotations

import json

import pytest

from admission.cli import main
from admission.commands.schema import Document


@pytest.mark.parametrize("document", list(Document))
def test_each_document_has_a_schema(capsys: pytest.CaptureFixture[str], document: Document) -> None:
    """The schema names its dialect, its properties in camelCase, and refuses unknown keys."""
    assert main(["schema", document.value]) == 0

    schema = json.loads(capsys.readouterr().out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    assert not any("_" in name for name in schema["properties"])


def test_the_job_spec_says_what_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    """Framework, model and input have to be given."""
    assert main(["schema", "jobspec"]) == 0

    assert json.loads(capsys.readouterr().out)["required"] == ["framework", "model", "input"]


def test_an_unknown_document_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2 and the documents there are."""
    assert main(["schema", "nonsense"]) == 2

    assert "jobspec" in capsys.readouterr().err
