"""Dashboards ask for what is there, and say what they show."""

from __future__ import annotations

import re

import pytest

from deploy.monitoring.dashboards.writing import BOARDS, made
from tests.admission.test_metrics_reference import documented
from tests.monitoring.asked import Asked, Json, asked, boards, metrics_in, panels, rules

BY_SERVE = documented("Shown by serve").keys()
BY_OTHERS = documented("Not shown by serve").keys()


def test_what_is_shipped_is_what_is_described() -> None:
    """`make dashboards` was run."""
    for path, text in made().items():
        assert path.read_text() == text, f"{path}: run `make dashboards`"


def test_every_board_is_shipped_and_no_other() -> None:
    """One that is gone is not shipped on."""
    assert boards().keys() == {board.name for board in BOARDS}


@pytest.mark.parametrize("board", boards().values(), ids=boards())
def test_board_can_be_found_and_left(board: Json) -> None:
    """An address of its own, the tag by which the others lead to it, a choice of Prometheus."""
    name = next(name for name, each in boards().items() if each == board)

    assert board["uid"] == f"vramgate-{name}"
    assert board["tags"] == ["vramgate"]
    assert [link["tags"] for link in board["links"]] == [["vramgate"]]
    variables = board["templating"]["list"]
    assert variables[0]["name"] == "datasource"
    assert board["description"]


@pytest.mark.parametrize("board", boards().values(), ids=boards())
def test_panel_says_what_it_shows(board: Json) -> None:
    """Title, a sentence, a unit; its number is its own."""
    found = [panel for _, panel in panels(board)]

    for panel in found:
        assert panel["title"]
        assert panel["description"].endswith((".", "?"))
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
    assert len({panel["id"] for panel in found}) == len(found)


@pytest.mark.parametrize("query", asked(), ids=lambda query: query.name)
def test_query_asks_for_metrics_that_are_documented(query: Asked) -> None:
    """What is open at first asks for nothing that the webhook does not show."""
    found = metrics_in(query.expr)

    if query.is_hidden:
        assert found <= BY_SERVE | BY_OTHERS
    else:
        assert found
        assert found <= BY_SERVE


def test_records_that_are_asked_for_are_made() -> None:
    """By the rules beside the dashboards."""
    records = {rule["record"] for rule in rules() if "record" in rule}
    found = {name for query in asked() for name in re.findall(r"vramgate(?::\w+){2}", query.expr)}

    assert found
    assert found <= records


def test_closed_rows_say_what_they_need() -> None:
    """Whoever opens one knows why it is empty."""
    rows = {query.row for query in asked() if query.is_hidden}

    assert all("(needs " in row for row in rows)
    for needed in ("agent", "controller", "dcgm-exporter", "kube-state-metrics", "rules"):
        assert any(needed in row for row in rows), needed
