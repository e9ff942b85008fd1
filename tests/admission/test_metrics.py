"""Every series is named here, and its labels come from closed sets."""

from __future__ import annotations

import math
import re

import pytest
from prometheus_client import CollectorRegistry

from admission.cache import CacheResult
from admission.certificates.problems import CertificateProblem
from admission.codes import Action, Mode, Verdict
from admission.metric_labels import FAULT
from admission.metrics import Metrics
from admission.outages import Watched
from estimator.errors import EstimateTimeoutError
from estimator.processes.jail import Isolation
from estimator.units import GIB
from tests.builders import estimate, job_spec, node_class

NAMES = {
    "vramgate_reviews_total",
    "vramgate_review_seconds",
    "vramgate_estimate_seconds",
    "vramgate_estimates_total",
    "vramgate_estimator_isolation",
    "vramgate_estimator_workers",
    "vramgate_cache_requests_total",
    "vramgate_spec_source_total",
    "vramgate_unknown_total",
    "vramgate_steered_total",
    "vramgate_patches_dropped_total",
    "vramgate_gpu_class_count",
    "vramgate_gpu_class_gpus",
    "vramgate_admitted_predicted_bytes_total",
    "vramgate_workload_estimate_bytes",
    "vramgate_gpu_class_usable_bytes",
    "vramgate_certificate_expiry_seconds",
    "vramgate_certificate_problems",
    "vramgate_watch_interrupted",
    "vramgate_ca_bundle_injections_total",
    "vramgate_would_deny_total",
    "vramgate_settings_reloads_total",
    "vramgate_policy_enabled",
    "vramgate_build_info",
}


def new_metrics() -> Metrics:
    """Return metrics in a registry of their own."""
    return Metrics(CollectorRegistry())


def value(metrics: Metrics, series: str) -> float | None:
    """Return the value of a series as `/metrics` shows it."""
    found = re.search(rf"^{re.escape(series)} (\S+)$", metrics.text().decode(), re.MULTILINE)
    return float(found[1]) if found else None


def test_every_metric_has_its_documented_name() -> None:
    """The names are a contract with dashboards and rules."""
    text = new_metrics().text().decode()

    assert set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)) == NAMES


def test_what_isolates_workers_is_shown_once_it_is_known() -> None:
    """By feature; nothing before a template is ready."""
    metrics = new_metrics()
    metrics.isolation(None)
    assert "vramgate_estimator_isolation{" not in metrics.text().decode()

    metrics.isolation(Isolation(system_calls=True, files=0))

    assert value(metrics, 'vramgate_estimator_isolation{feature="seccomp"}') == 1
    assert value(metrics, 'vramgate_estimator_isolation{feature="landlock"}') == 0


def test_two_registries_do_not_meet() -> None:
    """Nothing is registered for the whole process: two servers can live in one test."""
    first, second = new_metrics(), new_metrics()

    first.unknown("late")

    assert value(first, 'vramgate_unknown_total{code="late"}') == 1
    assert value(second, 'vramgate_unknown_total{code="late"}') == 0


def test_denials_are_there_before_the_first() -> None:
    """A counter that starts at 0 lets a rule see the first increase."""
    series = 'vramgate_reviews_total{action="deny",kind="Job",mode="enforce",verdict="oom"}'

    assert value(new_metrics(), series) == 0


def test_review_counts_once_under_its_labels() -> None:
    """Kind, verdict, action and mode, and its time under where the estimate came from."""
    metrics = new_metrics()

    metrics.reviews(
        kind="Job",
        verdict=Verdict.OOM,
        action=Action.DENY,
        mode=Mode.ENFORCE,
        cache="hit",
    )(0.004)

    counted = 'vramgate_reviews_total{action="deny",kind="Job",mode="enforce",verdict="oom"}'
    timed = 'vramgate_review_seconds_bucket{cache="hit",le="%s"}'
    assert value(metrics, counted) == 1
    assert value(metrics, timed % "0.0025") == 0
    assert value(metrics, timed % "0.005") == 1


def test_labels_from_outside_cannot_make_new_series() -> None:
    """A kind, code or source nobody knows is `other`: manifests do not grow the exposition."""
    metrics = new_metrics()
    before = metrics.text().count(b"\n")

    for number in range(50):
        metrics.reviews(
            kind=f"Kind{number}",
            verdict=Verdict.SKIPPED,
            action=Action.ALLOW,
            mode=Mode.WARN,
            cache=f"cache{number}",
        )(0)
        metrics.unknown(f"code{number}")
        metrics.read(f"source{number}")

    assert metrics.text().count(b"\n") == before
    assert value(metrics, 'vramgate_unknown_total{code="other"}') == 50
    assert value(metrics, 'vramgate_spec_source_total{source="other"}') == 50


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("metadata.annotations[vramgate.dev/spec]", "annotation"),
        ("containers[0].args --model_name_or_path", "args"),
        ("containers[0].command -a", "args"),
        ("env MODEL_NAME", "env"),
        ("configmap/train/config.yaml", "config"),
        ("default of imagenet main.py", "default"),
        ("imagenet main.py", "other"),
    ],
)
def test_source_is_counted_in_one_word(text: str, label: str) -> None:
    """What a person is told of a source has names in it; the label has not."""
    metrics = new_metrics()

    metrics.read(text)

    assert value(metrics, f'vramgate_spec_source_total{{source="{label}"}}') == 1


def test_faults_of_ours_have_a_code() -> None:
    """A review that failed on our own account can be alerted on."""
    metrics = new_metrics()

    metrics.unknown(FAULT)

    assert value(metrics, 'vramgate_unknown_total{code="fault"}') == 1


def test_estimates_count_by_method_or_failure() -> None:
    """An answer has its method, a failure its kind."""
    metrics = new_metrics()

    metrics.estimated(job_spec(), (estimate(least=GIB),), seconds=2)
    metrics.estimated(job_spec(), EstimateTimeoutError("too slow"), seconds=60)

    counted = 'vramgate_estimates_total{framework="pytorch",method="%s",outcome="%s"}'
    assert value(metrics, counted % ("trace", "ok")) == 1
    assert value(metrics, counted % ("none", "timeout")) == 1


def test_cache_questions_count_by_result() -> None:
    """Each way an answer can come has a series."""
    metrics = new_metrics()

    metrics.cache_asked(CacheResult.JOINED)

    assert value(metrics, 'vramgate_cache_requests_total{result="joined"}') == 1
    assert value(metrics, 'vramgate_cache_requests_total{result="hit"}') == 0


def test_classes_show_the_cluster_as_it_is_now() -> None:
    """Classes alike in product, memory and sharing add up; one that is gone is not shown."""
    metrics = new_metrics()
    metrics.classes([node_class("Old-Card")])

    metrics.classes(
        [
            node_class("Tesla-T4", budget=14 * GIB, num_nodes=2),
            node_class("Tesla-T4", budget=14 * GIB, num_nodes=1, gpus=4),
            node_class("Odd-Card", budget=None, unknown_reason="no label"),
        ]
    )

    labels = f'memory="{14 * 1024}",product="Tesla-T4",sharing="none"'
    odd = 'memory="unknown",product="Odd-Card",sharing="none"'
    assert value(metrics, f"vramgate_gpu_class_count{{{labels}}}") == 2 + 1
    assert value(metrics, f"vramgate_gpu_class_gpus{{{labels}}}") == 2 * 8 + 1 * 4
    assert value(metrics, f"vramgate_gpu_class_usable_bytes{{{labels}}}") == 14 * GIB
    assert value(metrics, f"vramgate_gpu_class_count{{{odd}}}") == 1
    assert value(metrics, f"vramgate_gpu_class_usable_bytes{{{odd}}}") is None
    assert "Old-Card" not in metrics.text().decode()


def test_workers_are_shown_by_state() -> None:
    """What the pool says last is what is shown."""
    metrics = new_metrics()
    metrics.workers({"busy": 2, "dead": 1})

    metrics.workers({"busy": 1, "dead": 0})

    assert value(metrics, 'vramgate_estimator_workers{state="busy"}') == 1
    assert value(metrics, 'vramgate_estimator_workers{state="dead"}') == 0


def test_certificate_that_is_not_there_yet_has_not_expired() -> None:
    """0 would be an alert at each start."""
    found = value(new_metrics(), "vramgate_certificate_expiry_seconds")

    assert found is not None
    assert math.isnan(found)


def test_observed_kinds_are_counted_as_allowed_only() -> None:
    """Nothing is said of them, so no series is spent on it."""
    series = 'vramgate_reviews_total{action="%s",kind="Notebook",mode="warn",verdict="oom"}'

    assert value(new_metrics(), series % "allow") == 0
    assert value(new_metrics(), series % "warn") is None


def test_certificate_expiry_counts_down() -> None:
    """The time left is that of the scrape, not of the load."""
    metrics = new_metrics()
    now = [1000.0]

    metrics.certificate_expires(5000.0, clock=lambda: now[0])
    now[0] = 2000.0

    assert value(metrics, "vramgate_certificate_expiry_seconds") == 5000 - 2000


def test_problems_of_certificates_are_shown_while_they_last() -> None:
    """Every one is there from the start, at 0: an alert needs no `absent()`."""
    metrics = new_metrics()
    found = []
    for problems in ((), (CertificateProblem.SECRET_FORBIDDEN,), (CertificateProblem.EXPIRED,), ()):
        metrics.certificate_problems(problems)
        found.append(
            [
                value(metrics, f'vramgate_certificate_problems{{problem="{label}"}}')
                for label in ("secret-forbidden", "expired", "fault")
            ]
        )

    assert found == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_interrupted_watches_are_one_series_a_kind_of_objects() -> None:
    """All there from the start, for a rule to ask about."""
    metrics = new_metrics()
    kinds = [watched.value for watched in Watched]

    seen = []
    for interrupted in ((), ("nodes", "secrets"), ()):
        metrics.watches_interrupted(interrupted)
        seen.append(
            {
                kind
                for kind in kinds
                if value(metrics, f'vramgate_watch_interrupted{{resource="{kind}"}}')
            }
        )

    assert seen == [set(), {"nodes", "secrets"}, set()]
