"""docs/metrics.md and the code name the same metrics with the same labels."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from admission.controller.exposition import Exposition
from admission.metric_values import admission_of
from estimator.processes.jail import Isolation
from tests.admission.test_metrics_bounds import fitting, judgement, new_metrics

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
CONTRACTS = REFERENCE.with_name("contracts.md")
Labels = dict[str, frozenset[str]]


def documented(section: str) -> Labels:
    """Return the metrics of a section's table with their labels."""
    text = REFERENCE.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(vramgate_\w+)` \|([^|]*)\|", text, re.MULTILINE)
    return {name: frozenset(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def exposed() -> Labels:
    """Return the metrics of `/metrics` with their labels, a workload and a template among them."""
    metrics = new_metrics(workloads=1)
    metrics.isolation(Isolation(system_calls=True, files=1))
    metrics.admitted(admission_of(judgement(fitting())), name="train")
    found: Labels = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        suffix = "_total" if family.type == "counter" else ""
        labels = {label for sample in family.samples for label in sample.labels}
        found[family.name + suffix] = frozenset(labels - {"le"})
    return found


def test_every_metric_is_documented_as_it_is() -> None:
    """By name and labels, and nothing is documented that is not there."""
    assert documented("Shown by serve") == exposed()


def test_what_others_will_show_is_not_shown_by_serve() -> None:
    """The webhook cannot know it, and does not act as if."""
    others = documented("Not shown by serve")

    assert others
    assert not others.keys() & exposed().keys()


def test_metrics_of_the_contract_are_those_that_are_documented() -> None:
    """Whoever shows them, with the labels that are agreed on, and no other."""
    text = CONTRACTS.read_text().split("## 6. Metrics")[1].split("\n## ")[0]
    agreed = dict(re.findall(r"`([a-z_]+)(\{[^`]*\})?`", text.split("Base units")[0]))
    known = documented("Shown by serve") | documented("Not shown by serve")

    del agreed["vramgate_"]
    for name, labels in agreed.items():
        expected = frozenset(re.findall(r"\w+", labels))
        assert known[f"vramgate_{name}"] >= expected, name
    assert {f"vramgate_{name}" for name in agreed} == known.keys()


def test_every_metric_of_the_controller_is_documented() -> None:
    """Those that it shows before anything has happened."""
    exposition = Exposition(duties=("stuck",), queued=lambda: 0)
    text = exposition.text().decode()
    shown = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    known = documented("Shown by serve") | documented("Not shown by serve")

    assert shown
    assert shown <= known.keys()
