"""`vramgate gpus` lists the catalog."""

from __future__ import annotations

import json

import pytest

from admission.cli import main
from estimator.catalog import all_gpus


def test_every_card_is_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """One line a card, with its name and label."""
    assert main(["gpus"]) == 0

    text = capsys.readouterr().out
    for gpu in all_gpus():
        assert f"{gpu.name}  " in text


def test_the_list_is_there_for_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has bytes and camelCase keys."""
    assert main(["gpus", "-o", "json"]) == 0

    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [gpu.name for gpu in all_gpus()]
    assert rows[0]["totalBytes"] == next(iter(all_gpus())).total_bytes
    assert all(row["usableBytes"] < row["totalBytes"] for row in rows)
