"""What of each kind of card is predicted to be in use and waited for, as Prometheus sees it."""

from __future__ import annotations

from typing import Any

import pytest

from admission.capacity.classes import classes_of
from admission.controller.exposition import Exposition
from admission.controller.pods import PodView
from admission.controller.predicted import nodes_of, number, predicted_of
from estimator.units import GIB
from tests.admission.controller.test_store import kept, pod
from tests.builders import gpu_labels, node

T4, A100 = "Tesla-T4", "NVIDIA-A100-SXM4-40GB"


def classes() -> Any:
    """Return the classes of one node of each card."""
    made = (
        node("small", labels=gpu_labels(product=T4, memory="15360")),
        node("large", labels=gpu_labels(product=A100, memory="40960")),
    )
    return classes_of(made)


def view(
    *, estimate: str | int = 8 * GIB, gpus: int = 1, on: str | None = None, phase: str = "Running"
) -> PodView:
    """Return a pod with an estimate."""
    made = pod(gpus=gpus, phase=phase)
    notes = {
        "vramgate.dev/estimate-bytes": str(estimate),
        "vramgate.dev/enough-bytes": str(estimate),
    }
    made["metadata"]["annotations"] = notes
    if on is not None:
        made["spec"]["nodeName"] = on
    return PodView(kept(made))


def test_each_gpu_of_a_pod_counts_at_its_nodes_card() -> None:
    """Every class is there, with 0 where nothing is on it."""
    found = predicted_of([view(gpus=4, on="large"), view(on="small")], classes())

    assert found == {
        (A100, "running"): 32 * GIB,
        (T4, "running"): 8 * GIB,
        (A100, "waiting"): 0,
        (T4, "waiting"): 0,
    }


def test_a_pod_that_waits_counts_at_the_smallest_card_that_holds_it() -> None:
    """One that no card holds is counted too, at none."""
    waiting = [view(phase="Pending"), view(estimate=20 * GIB, phase="Pending")]
    found = predicted_of([*waiting, view(estimate=90 * GIB, phase="Pending")], classes())

    assert found[T4, "waiting"] == 8 * GIB
    assert found[A100, "waiting"] == 20 * GIB
    assert found["none", "waiting"] == 90 * GIB


def test_what_has_ended_or_says_nothing_holds_nothing() -> None:
    """Nor does an annotation that is no number of bytes."""
    ended = view(on="small", phase="Succeeded")

    assert sum(predicted_of([ended, view(estimate="much", on="small")], classes()).values()) == 0


@pytest.mark.parametrize("text", [None, "", "-1", "1e9", "٣", "9" * 30, "0x10"])
def test_an_annotation_that_is_no_number_is_none(text: str | None) -> None:
    """Anybody may have written it."""
    assert number(text) is None


def test_series_are_what_there_is_when_asked() -> None:
    """Nodes by name only if they are wanted."""
    exposition = Exposition(duties=("stuck",), queued=lambda: 3)
    pods = [view(on="small")]
    exposition.show(lambda: predicted_of(pods, classes()), lambda: nodes_of(classes()))
    text = exposition.text().decode()

    held = f'vramgate_class_predicted_bytes{{product="{T4}",state="running"}}'
    assert f"{held} {8 * GIB:.9e}" in text
    assert f'vramgate_node_gpus{{node="large",product="{A100}"}}' in text
    assert "vramgate_controller_queue 3.0" in text
    assert 'vramgate_rescheduled_total{reason="out-of-memory"} 0.0' in text
    pods.clear()
    after = exposition.text().decode()
    assert f"{held} 0.0" in after


def test_what_rules_wait_for_starts_at_nothing() -> None:
    """So that a rule sees the first death and the first failed estimate as an increase."""
    text = Exposition(duties=(), queued=lambda: 0).text().decode()

    assert 'vramgate_oom_total{framework="none",predicted="false"} 0.0' in text
    failed = 'vramgate_estimates_total{framework="jax",method="none",outcome="timeout"}'
    assert f"{failed} 0.0" in text
    assert 'framework="jax",method="trace"' not in text


def test_deaths_are_counted_by_framework_and_by_what_was_said_before() -> None:
    """A framework that nobody knows is none."""
    exposition = Exposition(duties=(), queued=lambda: 0)
    exposition.died("pytorch", predicted=True)
    exposition.died("else", predicted=None)
    text = exposition.text().decode()

    assert 'vramgate_oom_total{framework="pytorch",predicted="true"} 1.0' in text
    assert 'vramgate_oom_total{framework="none",predicted="unknown"} 1.0' in text
