"""Rules and dashboards as the chart ships them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from deploy.monitoring.dashboards.writing import BOARDS, RULES
from tests.chart.rendering import Document, RenderError, all_of_kind, documents, of_kind, rendered

pytestmark = pytest.mark.e2e


def dashboards_of(found: tuple[Document, ...]) -> dict[str, Any]:
    """Return the dashboards among *found* by their file's name."""
    maps = all_of_kind(found, "ConfigMap")
    texts = {name: text for each in maps for name, text in each["data"].items()}
    return {name: json.loads(text) for name, text in texts.items() if name.endswith(".json")}


def test_rules_are_those_of_the_file() -> None:
    """Braces of alert texts are Prometheus' own and pass helm unread."""
    found = documents({"metrics": {"rules": {"enabled": True, "labels": {"release": "kps"}}}})

    rule = of_kind(found, "PrometheusRule")
    assert rule["spec"] == yaml.safe_load(RULES.read_text())
    assert rule["metadata"]["labels"]["release"] == "kps"


def test_rules_lead_to_the_runbooks_where_they_are_published() -> None:
    """Every alert has its section behind the address of the values."""
    where = "https://docs.example.com/runbooks"
    found = documents({"metrics": {"rules": {"enabled": True, "runbooks": where}}})

    groups = of_kind(found, "PrometheusRule")["spec"]["groups"]
    alerts = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    assert {rule["annotations"]["runbook_url"] for rule in alerts} >= {f"{where}#vramgateabsent"}
    assert all(rule["annotations"]["runbook_url"].startswith(f"{where}#") for rule in alerts)


def test_rules_may_be_a_config_map() -> None:
    """For a Prometheus without an operator: the same file, to be mounted."""
    found = documents({"metrics": {"rules": {"enabled": True, "as": "configMap"}}})

    maps = {each["metadata"]["name"]: each for each in all_of_kind(found, "ConfigMap")}
    text = maps["vramgate-rules"]["data"]["vramgate.yaml"]
    assert yaml.safe_load(text) == yaml.safe_load(RULES.read_text())
    assert not all_of_kind(found, "PrometheusRule")


def test_dashboards_carry_the_label_that_the_sidecar_looks_for() -> None:
    """One ConfigMap each, unchanged, with what is said of folders."""
    folder = {"grafana_folder": "GPU"}
    found = documents({"metrics": {"dashboards": {"enabled": True, "annotations": folder}}})

    expected = {f"vramgate-{each.name}.json": json.loads(each.text()) for each in BOARDS}
    del expected["vramgate-job.json"]
    assert dashboards_of(found) == expected
    for each in all_of_kind(found, "ConfigMap"):
        if "dashboard" in each["metadata"]["name"]:
            assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
            assert each["metadata"]["annotations"] == folder


def test_dashboard_of_a_job_comes_with_the_series_it_shows() -> None:
    """Without `metrics.workloads` there is no job to choose."""
    shown = {"enabled": True}
    found = documents({"metrics": {"dashboards": shown}, "config": {"metrics": {"workloads": 50}}})

    assert "vramgate-job.json" in dashboards_of(found)


def test_nothing_of_it_is_there_unless_it_is_asked_for() -> None:
    """The kind PrometheusRule is not known everywhere."""
    found = documents()

    assert not all_of_kind(found, "PrometheusRule")
    assert not dashboards_of(found)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"rules": {"as": "rule"}}, "'prometheusRule', 'configMap'"),
        ({"rules": {"runbooks": "a b"}}, "/metrics/rules/runbooks"),
        ({"dashboards": {"label": {}}}, "'label' not allowed"),
    ],
)
def test_value_that_cannot_work_is_refused(values: dict[str, Any], expected: str) -> None:
    """As any of the chart."""
    with pytest.raises(RenderError) as caught:
        rendered({"metrics": values})

    assert expected in str(caught.value)
