"""Every series of the agent is named here, and those of cards and pods go with them."""

from __future__ import annotations

import re
from pathlib import Path

from admission.agent.exposition import ENDED, Exposition
from admission.agent.marks import Ending
from admission.agent.pods import Pod
from admission.agent.problems import AgentProblem
from admission.agent.reading import Card
from admission.agent.sampling import View
from admission.agent.writing import Written

NAMES = {
    "vramgate_pod_gpu_memory_peak_bytes",
    "vramgate_gpu_memory_total_bytes",
    "vramgate_gpu_memory_used_bytes",
    "vramgate_gpu_memory_reserved_bytes",
    "vramgate_gpu_memory_unattributed_bytes",
    "vramgate_estimate_error_ratio",
    "vramgate_agent_samples_total",
    "vramgate_agent_sample_seconds_total",
    "vramgate_agent_problems",
    "vramgate_agent_annotations_total",
    "vramgate_watch_interrupted",
    "vramgate_build_info",
}
CARD = Card(
    gpu="GPU-1", index="0", instance="7", product="Tesla T4", total=1000, used=600, reserved=50
)
POD = Pod(uid="u", namespace="n", name="p")
SEEN = View(cards=(CARD,), marks=((POD, {("main", "GPU-1"): 500}),), unattributed=100)


def lines(exposition: Exposition) -> list[str]:
    """Return the series that are shown."""
    text = exposition.text().decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_every_series_is_named_and_nothing_else() -> None:
    """Dashboards and alerts are written by these names."""
    text = Exposition(lambda: SEEN).text().decode()

    assert set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)) == NAMES


def test_every_series_is_documented() -> None:
    """With whoever shows it."""
    reference = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"
    documented = set(re.findall(r"^\| `(vramgate_\w+)` ", reference.read_text(), re.MULTILINE))

    assert documented >= NAMES


def test_what_was_seen_is_shown_as_it_is_now() -> None:
    """A card or a pod that is gone leaves nothing behind."""
    view = [SEEN]
    exposition = Exposition(lambda: view[0])
    labels = '{gpu="GPU-1",index="0",instance="7",product="Tesla T4"}'
    peak = (
        'vramgate_pod_gpu_memory_peak_bytes{container="main",gpu="GPU-1",namespace="n",pod="p"}'
        " 500.0"
    )

    shown = lines(exposition)
    view[0] = View()
    after = lines(exposition)

    assert f"vramgate_gpu_memory_total_bytes{labels} 1000.0" in shown
    assert f"vramgate_gpu_memory_used_bytes{labels} 600.0" in shown
    assert f"vramgate_gpu_memory_reserved_bytes{labels} 50.0" in shown
    assert _sorted_labels(peak) in map(_sorted_labels, shown)
    assert "vramgate_gpu_memory_unattributed_bytes 100.0" in shown
    assert not [line for line in after if "GPU-1" in line]


def test_known_label_values_start_at_zero() -> None:
    """So that a first problem, or a first write that fails, is a change."""
    shown = lines(Exposition(View))

    for problem in AgentProblem:
        assert f'vramgate_agent_problems{{problem="{problem}"}} 0.0' in shown
    for outcome in Written:
        assert f'vramgate_agent_annotations_total{{outcome="{outcome}"}} 0.0' in shown
    for ended in ENDED:
        assert f'vramgate_estimate_error_ratio_count{{ended="{ended}"}} 0.0' in shown
    assert 'vramgate_watch_interrupted{resource="pods"} 0.0' in shown


def test_what_happens_is_counted() -> None:
    """Ratios in buckets that are finest around one."""
    exposition = Exposition(View)
    exposition.ended(Ending(ended="failed", ratio=1.04))
    exposition.problems({AgentProblem.CARD_LOST})
    exposition.wrote(Written.DONE)
    exposition.looked(0.25)
    exposition.watches_interrupted({"pods"})

    shown = lines(exposition)

    assert 'vramgate_estimate_error_ratio_bucket{ended="failed",le="1.0"} 0.0' in shown
    assert 'vramgate_estimate_error_ratio_bucket{ended="failed",le="1.05"} 1.0' in shown
    assert 'vramgate_agent_problems{problem="card-lost"} 1.0' in shown
    assert 'vramgate_agent_annotations_total{outcome="done"} 1.0' in shown
    assert "vramgate_agent_samples_total 1.0" in shown
    assert "vramgate_agent_sample_seconds_total 0.25" in shown
    assert 'vramgate_watch_interrupted{resource="pods"} 1.0' in shown


def _sorted_labels(line: str) -> tuple[str, tuple[str, ...], str]:
    name, _, rest = line.partition("{")
    labels, _, value = rest.partition("}")
    return name, tuple(sorted(labels.split(","))), value
