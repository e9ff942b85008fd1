"""The rules, read and tried by the real promtool."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.monitoring.dashboards.writing import RULES
from tests.admission.test_metrics_reference import REFERENCE, documented
from tests.e2e.prometheus.build import build
from tests.e2e.prometheus.cases import HEALTHY, MINUTES, always, named
from tests.e2e.prometheus.cases_after import ALL, LEADS, at_work

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Return promtool."""
    return build() / "promtool"


def said(promtool: Path, *arguments: str | Path) -> str:
    """Return what promtool prints; it must be content."""
    argv = [str(promtool), *map(str, arguments)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def tried(promtool: Path, folder: Path, cases: Sequence[Mapping[str, Any]]) -> None:
    """Have promtool try *cases* on the rules."""
    document = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": list(cases)}
    path = folder / "tests.json"  # JSON is YAML
    path.write_text(json.dumps(document))
    said(promtool, "test", "rules", path)


def test_rules_are_sound(promtool: Path) -> None:
    """Syntax, types, templates, and no rule twice."""
    assert "SUCCESS" in said(promtool, "check", "rules", "--lint=all", "--lint-fatal", RULES)


def test_examples_of_the_reference_are_queries(promtool: Path, tmp_path: Path) -> None:
    """Whoever pastes one into Prometheus gets an answer."""
    rows = re.findall(r"^\| `vramgate_\w+` .*\| `(.+)` \|$", REFERENCE.read_text(), re.MULTILINE)
    rules = [
        {"record": f"example:{at}", "expr": row.replace("\\|", "|")} for at, row in enumerate(rows)
    ]
    path = tmp_path / "examples.json"
    path.write_text(json.dumps({"groups": [{"name": "examples", "rules": rules}]}))

    assert len(rows) == len(documented("Shown by serve"))
    said(promtool, "check", "rules", path)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.alert)
def test_alert_fires_alone(promtool: Path, tmp_path: Path, case: Any) -> None:
    """One thing is wrong for long enough: its alert fires, and no other."""
    tried(promtool, tmp_path, [case.document()])


def test_every_alert_has_a_case() -> None:
    """A new alert is tried, or it is not there."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}

    assert alerts == {case.alert for case in ALL}


@pytest.mark.parametrize("num_templates", [0, 1])
def test_all_is_silent_where_all_is_well(
    promtool: Path, tmp_path: Path, num_templates: int
) -> None:
    """At the start, after an hour, and after more than a day; without agent and controller.

    Whether templates are started ahead (`workers.preload`) or with the first job.
    """
    templates = {named("estimator_workers", state="idle-template"): always(num_templates)}
    moments = (1, 15, 70, MINUTES)
    tests = [{"expr": "ALERTS", "eval_time": f"{at}m", "exp_samples": []} for at in moments]
    rows = {**HEALTHY, **templates}
    series = [{"series": name, "values": value} for name, value in rows.items()]

    tried(
        promtool,
        tmp_path,
        [{"interval": "1m", "input_series": series, "promql_expr_test": tests}],
    )


def test_all_is_silent_with_a_controller_at_work(promtool: Path, tmp_path: Path) -> None:
    """It leads, another waits for its turn, and every counter is what it was."""
    standby = LEADS.replace("controller-0", "controller-1")
    rows = {**HEALTHY, **at_work(), standby: always(0)}
    moments = (1, 15, 70, MINUTES)
    tests = [{"expr": "ALERTS", "eval_time": f"{at}m", "exp_samples": []} for at in moments]
    series = [{"series": name, "values": value} for name, value in rows.items()]

    tried(
        promtool,
        tmp_path,
        [{"interval": "1m", "input_series": series, "promql_expr_test": tests}],
    )


@pytest.mark.parametrize(
    ("minutes", "is_told"),
    [(30, True), (26 * 60, False)],
    ids=["soon", "a day later"],
)
def test_controllers_that_are_gone_are_missed_for_a_day(
    promtool: Path, tmp_path: Path, minutes: int, is_told: bool
) -> None:
    """Nobody shows a 0 then; whoever took them away on purpose is not told for ever."""
    rows = {**HEALTHY, LEADS: "1x9 stale"}
    alert = 'ALERTS{alertname="VramgateControllerAbsent",alertstate="firing",severity="warning"}'
    expected = [{"labels": alert, "value": 1}] if is_told else []
    expr = 'ALERTS{alertstate="firing"}'
    tests = [{"expr": expr, "eval_time": f"{minutes}m", "exp_samples": expected}]
    series = [{"series": name, "values": value} for name, value in rows.items()]

    tried(
        promtool,
        tmp_path,
        [{"interval": "1m", "input_series": series, "promql_expr_test": tests}],
    )


def test_replicas_share_the_work_and_see_the_same_cards(promtool: Path, tmp_path: Path) -> None:
    """What is counted is added up, cards are not; a restart of one loses nothing."""
    cards = 'product="T4",memory="15360",sharing="none"'
    rows = {
        f'vramgate_gpu_class_gpus{{{cards},pod="a"}}': "8x100",
        f'vramgate_gpu_class_gpus{{{cards},pod="b"}}': "8x100",
        f'vramgate_gpu_class_usable_bytes{{{cards},pod="a"}}': "100x100",
        f'vramgate_gpu_class_usable_bytes{{{cards},pod="b"}}': "100x100",
        f'vramgate_admitted_predicted_bytes_total{{{cards},pod="a"}}': "0+5x100",
        f'vramgate_admitted_predicted_bytes_total{{{cards},pod="b"}}': "0+5x49 0+5x50",
    }
    expected = {
        "vramgate:gpu_class_gpus:max": 8,
        "vramgate:gpu_class_capacity_bytes:max": 800,
    }
    tests = [
        {
            "expr": name,
            "eval_time": "90m",
            "exp_samples": [{"labels": f"{name}{{{cards}}}", "value": value}],
        }
        for name, value in expected.items()
    ]
    # Each 60 times 5, less a step that is lost in the restart.
    tests.append(
        {
            "expr": "vramgate:admitted_predicted_bytes:increase1h > bool 590",
            "eval_time": "90m",
            "exp_samples": [{"labels": f"{{{cards}}}", "value": 1}],
        }
    )

    series = [{"series": name, "values": value} for name, value in rows.items()]
    tried(
        promtool,
        tmp_path,
        [{"interval": "1m", "input_series": series, "promql_expr_test": tests}],
    )


def test_alert_says_what_it_found(promtool: Path, tmp_path: Path) -> None:
    """Figures in the units of people."""
    (case,) = (case for case in ALL if case.alert == "VramgateCertificateExpiring")
    document = case.document()
    del document["promql_expr_test"]
    labels = {**case.labels, "severity": "warning"}
    told = {
        "summary": "The certificate of 10.0.0.1:8080 was not renewed.",
        "description": "It expires in 20d 0h 0m 0s. Then no review reaches Vramgate.",
        "runbook_url": "docs/runbooks.md#vramgatecertificateexpiring",
    }
    document["alert_rule_test"] = [
        {
            "eval_time": "70m",
            "alertname": case.alert,
            "exp_alerts": [{"exp_labels": labels, "exp_annotations": told}],
        }
    ]

    tried(promtool, tmp_path, [document])
