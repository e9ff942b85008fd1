"""What a cluster and its jobs may make of `/metrics`: never more than it can bear."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from admission.codes import Action, Mode, Verdict
from admission.metric_values import MOST_CLASSES, admission_of
from admission.metrics import Metrics
from admission.review import Route
from admission.values import Judgement, UnitJudgement
from estimator.units import GIB
from tests.admission.test_handler import FITS, TOO_LARGE, Bench, job, review_of
from tests.admission.test_metrics import value
from tests.builders import judged, node_class, unit, verdict_on, workload

MOST_BYTES = 100_000
MOST_SERIES = 1_300
T4 = node_class("Tesla-T4", budget=14 * GIB)
LABELS = f'memory="{14 * 1024}",product="Tesla-T4",sharing="none"'
ADMITTED = "vramgate_admitted_predicted_bytes_total"
OTHERS = 'memory="other",product="other",sharing="other"'


def new_metrics(*, workloads: int = 0) -> Metrics:
    """Return metrics in a registry of their own that have seen T4."""
    metrics = Metrics(CollectorRegistry())
    metrics.show_workloads(workloads)
    metrics.classes([T4])
    return metrics


def judgement(*units: UnitJudgement) -> Judgement:
    """Return what was decided of a Job with these units."""
    return Judgement(
        workload=workload(*(each.unit for each in units)),
        verdict=Verdict.FITS,
        action=Action.ALLOW,
        mode=Mode.WARN,
        units=units,
        reason="",
        message="",
        hints=(),
        warnings=(),
    )


def fitting(*, peak: int = 3 * GIB, gpus: int = 1) -> UnitJudgement:
    """Return a unit that fits T4."""
    verdict = verdict_on(T4, least=2 * GIB, enough=peak)
    return judged(Verdict.FITS, verdict, reason="", of=unit(gpus=gpus))


def num_series(metrics: Metrics) -> int:
    """Return how many series `/metrics` has."""
    lines = metrics.text().decode().splitlines()
    return sum(not line.startswith("#") for line in lines)


def test_exposition_is_small_however_large_the_cluster() -> None:
    """5,000 nodes, each of a kind of its own with a long name: 32 classes, the rest together."""
    metrics = new_metrics()
    metrics.classes(
        [
            node_class(f"NVIDIA-A100-SXM4-80GB-{number:04}-MIG-3g.40gb", gpus=8)
            for number in range(5000)
        ]
    )

    assert len(metrics.text()) < MOST_BYTES
    assert num_series(metrics) < MOST_SERIES


def test_small_classes_are_one_when_there_are_too_many() -> None:
    """Those with most GPUs keep their names; nothing is lost of the sums."""
    metrics = new_metrics()
    small = [
        node_class(f"Small-{at}", budget=at * GIB, gpus=1) for at in range(1, MOST_CLASSES + 3)
    ]
    metrics.classes([node_class("Large", budget=80 * GIB, num_nodes=9), *small])

    large = f'memory="{80 * 1024}",product="Large",sharing="none"'
    num_others = len(small) - (MOST_CLASSES - 1)
    assert value(metrics, f"vramgate_gpu_class_gpus{{{large}}}") == 9 * 8
    assert value(metrics, f"vramgate_gpu_class_gpus{{{OTHERS}}}") == num_others
    assert value(metrics, f"vramgate_gpu_class_count{{{OTHERS}}}") == num_others
    assert value(metrics, f"vramgate_gpu_class_usable_bytes{{{OTHERS}}}") == MOST_CLASSES * GIB


def test_admitted_job_counts_what_all_its_gpus_will_take() -> None:
    """By the class that holds it, from 0 on as soon as the class is there."""
    metrics = new_metrics()
    before = value(metrics, f"{ADMITTED}{{{LABELS}}}")

    metrics.admitted(admission_of(judgement(fitting(gpus=4), fitting())), name="train")

    assert before == 0
    assert value(metrics, f"{ADMITTED}{{{LABELS}}}") == (4 + 1) * 3 * GIB


def test_admitted_job_on_a_class_that_is_not_shown_counts_among_the_others() -> None:
    """Classes change between a verdict and its counting; that makes no series."""
    metrics = new_metrics()
    metrics.classes([node_class("Other-Card")])

    metrics.admitted(admission_of(judgement(fitting())), name="train")

    assert value(metrics, f"{ADMITTED}{{{OTHERS}}}") == 3 * GIB
    assert value(metrics, f"{ADMITTED}{{{LABELS}}}") is None


def test_unit_without_estimate_adds_nothing() -> None:
    """An unknown job takes what nobody knows, not 0 of some class."""
    metrics = new_metrics()
    before = metrics.text()

    metrics.admitted(admission_of(judgement(judged(Verdict.UNKNOWN, reason="late"))), name="train")

    assert metrics.text() == before


def test_workloads_are_shown_only_where_it_is_asked_for() -> None:
    """Names of jobs are nobody's business by default."""
    metrics = new_metrics()

    metrics.admitted(admission_of(judgement(fitting())), name="train")

    assert 'workload="train"' not in metrics.text().decode()


def test_workload_is_shown_with_its_figures_and_its_card() -> None:
    """The bounds of the estimate as in the JSON."""
    metrics = new_metrics(workloads=1)

    metrics.admitted(admission_of(judgement(fitting())), name="train")

    found = {
        bound: value(
            metrics,
            f'vramgate_workload_estimate_bytes{{bound="{bound}",namespace="default",'
            'workload="train",workload_kind="Job"}',
        )
        for bound in ("least", "enough", "peak", "most", "usable")
    }
    low, high = 2 * GIB, 3 * GIB
    assert found == {"least": low, "enough": high, "peak": high, "most": high, "usable": 14 * GIB}


def test_workloads_admitted_last_are_kept() -> None:
    """An older one goes when there are too many; one that comes again is new."""
    metrics = new_metrics(workloads=2)
    for name in ("first", "second", "first", "third"):
        metrics.admitted(admission_of(judgement(fitting())), name=name)

    text = metrics.text().decode()
    shown = [name for name in ("first", "second", "third") if f'workload="{name}"' in text]

    assert shown == ["first", "third"]


def test_workloads_are_forgotten_when_fewer_are_asked_for() -> None:
    """As soon as the settings say so."""
    metrics = new_metrics(workloads=2)
    metrics.admitted(admission_of(judgement(fitting())), name="first")

    metrics.show_workloads(0)

    assert 'workload="first"' not in metrics.text().decode()


@pytest.mark.parametrize("name", ['a"b', "a\nb", "a\\b"])
def test_name_of_a_job_cannot_break_the_exposition(name: str) -> None:
    """What Kubernetes would refuse is escaped all the same: it is refused after us."""
    metrics = new_metrics(workloads=1)
    lines = num_series(metrics)

    metrics.admitted(admission_of(judgement(fitting())), name=name)

    assert num_series(metrics) == lines + 5


async def test_job_is_counted_once_as_admitted() -> None:
    """At its creation, by the webhook that sees what is stored."""
    bench = Bench()
    bench.metrics.classes(bench.cluster.classes)
    fits = job(batch_size=FITS)

    for route in Route:
        await bench.response(review_of(fits), route=route)

    (admitted,) = bench.series(ADMITTED).values()
    await bench.response(review_of(fits, old=fits))
    await bench.response(review_of(fits, dry_run=True))
    await bench.response(review_of(job(batch_size=TOO_LARGE)))  # denied
    assert list(bench.series(ADMITTED).values()) == [admitted]


async def test_what_a_controller_makes_is_not_counted_as_admitted() -> None:
    """It was, with the object that it is made for."""
    bench = Bench()
    owned = job(batch_size=FITS)
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "a", "uid": "1"}
    owned["metadata"]["ownerReferences"] = [{**owner, "controller": True}]

    await bench.response(review_of(owned))

    assert not bench.series(ADMITTED)
