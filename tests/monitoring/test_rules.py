"""Alerts ask for what is there, and tell people what to do."""

from __future__ import annotations

import re

import pytest

from deploy.monitoring.dashboards.writing import REPOSITORY
from tests.admission.test_metrics_reference import documented
from tests.monitoring.asked import Json, metrics_in, rules

ALERTS = [rule for rule in rules() if "alert" in rule]
RUNBOOKS = (REPOSITORY / "docs" / "runbooks.md").read_text()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_rule_asks_for_what_is_there(rule: Json) -> None:
    """Metrics that are documented, and records of the same file."""
    known = documented("Shown by serve").keys() | documented("Not shown by serve").keys()
    records = {each["record"] for each in rules() if "record" in each}

    assert metrics_in(rule["expr"]) <= known
    assert set(re.findall(r"vramgate:\w+(?::\w+)?", rule["expr"])) <= records


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_alert_can_be_acted_on(rule: Json) -> None:
    """How bad, what is the matter, and where the next step is written."""
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    page, _, section = rule["annotations"]["runbook_url"].partition("#")
    assert (page, section) == ("docs/runbooks.md", rule["alert"].lower())
    assert f"\n## {rule['alert']}\n" in RUNBOOKS


def test_every_runbook_is_of_an_alert() -> None:
    """One that is gone leaves no section behind."""
    sections = re.findall(r"^## (\w+)$", RUNBOOKS, re.MULTILINE)

    assert sections == [rule["alert"] for rule in ALERTS]


def test_runbooks_refer_to_sections_that_exist() -> None:
    """Links within the page and to the pages beside it."""
    for page, section in re.findall(r"\]\(([\w.]*)#([\w-]+)\)", RUNBOOKS):
        text = (REPOSITORY / "docs" / page).read_text() if page else RUNBOOKS
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        assert section in {heading.lower().replace(" ", "-") for heading in headings}, section
