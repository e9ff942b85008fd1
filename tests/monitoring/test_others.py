"""docs/metrics.md and the code of agent and controller name the same metrics, labels among them."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.admission.test_metrics_reference import REFERENCE, Labels, documented
from tests.e2e.prometheus.others import SHOWN_BY_BOTH, agent, controller
from tests.monitoring.asked import asked, metrics_in, rules

SHOWN_BY_SERVE_TOO = (*SHOWN_BY_BOTH, "vramgate_estimate_seconds", "vramgate_estimates_total")


def shown(text: str) -> Labels:
    """Return the metrics of an exposition with their labels, those of its own."""
    found: Labels = {}
    for family in text_string_to_metric_families(text):
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = {label for sample in family.samples for label in sample.labels}
        if (
            name not in SHOWN_BY_SERVE_TOO
            and family.type != "info"
            and family.name != "vramgate_build"
        ):
            found[name] = frozenset(labels - {"le"})
    return found


def documented_of(whose: str) -> Labels:
    """Return the rows of the table that are *whose*, with their labels."""
    text = REFERENCE.read_text().split("## Not shown by serve\n")[1].split("\n## ")[0]
    names = re.findall(rf"^\| `(vramgate_\w+)` \|[^|]*\| {whose}\b", text, re.MULTILINE)
    every = documented("Not shown by serve")
    return {name: every[name] for name in names}


@pytest.mark.parametrize(
    ("whose", "text"),
    [("controller", controller("Tesla-T4")), ("agent", agent("team", "train", "Tesla-T4"))],
    ids=["controller", "agent"],
)
def test_every_metric_is_documented_as_it_is(whose: str, text: str) -> None:
    """By name and labels, and nothing is documented that is not there."""
    assert documented_of(whose) == shown(text)


def test_every_metric_of_the_controller_is_asked_for() -> None:
    """By a panel or a rule: what nobody looks at need not be shown."""
    queries = [query.expr for query in asked()] + [rule["expr"] for rule in rules()]
    found = frozenset().union(*map(metrics_in, queries))
    opt_in = {"vramgate_node_gpu_memory_bytes", "vramgate_node_gpus"}

    assert shown(controller("Tesla-T4")).keys() - opt_in <= found
