"""A cluster in which all is well, and one change to it for each alert.

    series that differ, minutes -> the one alert that must fire

Values are written as promtool reads them: `start+step x times`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Series = Mapping[str, str]

MINUTES = 1800
"""More than any case is long."""
REPLICA = 'namespace="vramgate-system",pod="vramgate-0",instance="10.0.0.1:8080"'
CARDS = f'product="Tesla-T4",memory="15360",sharing="none",{REPLICA}'
ON_REPLICA = {
    "namespace": "vramgate-system",
    "pod": "vramgate-0",
    "instance": "10.0.0.1:8080",
}
GIB = 1 << 30


def always(value: float) -> str:
    """Return a series that stays as it is."""
    return f"{value}x{MINUTES}"


def growing(step: float) -> str:
    """Return a counter that grows by *step* each minute."""
    return f"0+{step}x{MINUTES}"


def named(name: str, **labels: str) -> str:
    """Return a series of the replica."""
    own = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"vramgate_{name}{{{own}{',' if own else ''}{REPLICA}}}"


def review(verdict: str, kind: str = "Job") -> str:
    """Return the series of reviews with *verdict* in mode warn."""
    action = "allow" if verdict == "fits" else "warn"
    return named("reviews_total", kind=kind, verdict=verdict, action=action, mode="warn")


def bucket(bound: str) -> str:
    """Return the series of reviews that took at most *bound* seconds."""
    return named("review_seconds_bucket", cache="hit", le=bound)


def estimates(outcome: str) -> str:
    """Return the series of PyTorch estimates that ended in *outcome*."""
    method = "trace" if outcome == "ok" else "none"
    return named("estimates_total", framework="pytorch", method=method, outcome=outcome)


HEALTHY: Series = {
    named("build_info", version="1"): always(1),
    named("policy_enabled"): always(1),
    review("fits"): growing(10),
    review("oom"): always(0),
    review("unknown"): always(0),
    bucket("0.01"): growing(10),
    bucket("5.0"): growing(10),
    bucket("+Inf"): growing(10),
    named("review_seconds_count", cache="hit"): growing(10),
    named("review_seconds_count", cache="late"): always(0),
    estimates("ok"): growing(2),
    estimates("timeout"): always(0),
    estimates("unsupported"): growing(2),
    named("unknown_total", code="fault"): always(0),
    named("unknown_total", code="no-class"): always(0),
    named("patches_dropped_total", kind="Job"): always(0),
    named("estimator_workers", state="starting"): always(0),
    named("estimator_workers", state="idle-template"): always(1),
    named("estimator_workers", state="busy"): always(0),
    named("estimator_workers", state="dead"): always(0),
    named("certificate_expiry_seconds"): always(200 * 86400),
    named("certificate_problems", problem="secret-forbidden"): always(0),
    named("ca_bundle_injections_total"): always(2),
    named("watch_interrupted", resource="nodes"): always(0),
    named("settings_reloads_total", outcome="applied"): growing(1),
    named("settings_reloads_total", outcome="refused"): always(0),
    f"vramgate_gpu_class_gpus{{{CARDS}}}": always(8),
    f"vramgate_gpu_class_usable_bytes{{{CARDS}}}": always(15 * GIB),
    f"vramgate_admitted_predicted_bytes_total{{{CARDS}}}": growing(GIB),
}
"""One replica, eight T4, ten reviews a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is wrong, for how long, and who is told."""

    alert: str
    severity: str
    minutes: int
    """After these it fires."""
    changed: Series = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    is_bare: bool = False
    """Nothing at all is scraped."""
    with_it: tuple[str, ...] = ()
    """Alerts that fire too, because the same is wrong."""

    def document(self) -> dict[str, Any]:
        """Return the case as promtool reads it."""
        series = {} if self.is_bare else {**HEALTHY, **self.changed}
        expected = {"alertname": self.alert, "severity": self.severity, **self.labels}
        others = "".join(f',alertname!="{name}"' for name in self.with_it)
        firing = f'ALERTS{{alertstate="firing"{others}}}'
        text = ",".join(f'{label}="{value}"' for label, value in expected.items())
        return {
            "name": self.alert,
            "interval": "1m",
            "input_series": [{"series": name, "values": value} for name, value in series.items()],
            "promql_expr_test": [
                {
                    "expr": firing,
                    "eval_time": f"{self.minutes}m",
                    "exp_samples": [
                        {"labels": f'ALERTS{{alertstate="firing",{text}}}', "value": 1}
                    ],
                }
            ],
        }


def _on_replica(alert: str, minutes: int, changed: Series, **labels: str) -> Case:
    return Case(
        alert=alert,
        severity="warning",
        minutes=minutes,
        changed=changed,
        labels={**ON_REPLICA, **labels},
    )


def warned(alert: str, minutes: int, changed: Series, **labels: str) -> Case:
    """Return a case of severity `warning` about the whole install."""
    return Case(alert=alert, severity="warning", minutes=minutes, changed=changed, labels=labels)


def _told(alert: str, minutes: int, changed: Series, **labels: str) -> Case:
    return Case(alert=alert, severity="info", minutes=minutes, changed=changed, labels=labels)


FAIL_OPEN = (
    'apiserver_admission_webhook_fail_open_count{name="jobs.vramgate.dev",type="validating"}'
)
OF_FRAMEWORK = {"framework": "pytorch"}

CASES = (
    Case(alert="VramgateAbsent", severity="critical", minutes=12, is_bare=True),
    warned("VramgateNotCalled", 1600, {review("fits"): always(7)}),
    Case(
        alert="VramgateFailsOpen",
        severity="critical",
        minutes=20,
        changed={FAIL_OPEN: growing(1)},
        labels={"name": "jobs.vramgate.dev"},
    ),
    warned("VramgateDisabled", 62, {named("policy_enabled"): always(0)}),
    warned("VramgateReviewsSlow", 20, {bucket("0.01"): always(0)}),
    warned(
        "VramgateReviewsFail",
        20,
        {named("unknown_total", code="fault"): growing(1)},
        namespace="vramgate-system",
        pod="vramgate-0",
    ),
    warned(
        "VramgatePatchesDropped",
        20,
        {named("patches_dropped_total", kind="Job"): growing(1)},
        kind="Job",
    ),
    _on_replica(
        "VramgateEstimatorCold",
        12,
        {
            named("estimator_workers", state="idle-template"): always(0),
            named("estimator_workers", state="starting"): always(1),
        },
    ),
    _on_replica("VramgateEstimatorDead", 12, {named("estimator_workers", state="dead"): always(1)}),
    warned("VramgateEstimatesFail", 40, {estimates("timeout"): growing(2)}, **OF_FRAMEWORK),
    warned("VramgateEstimatesSlow", 40, {named("review_seconds_count", cache="late"): growing(3)}),
    _on_replica(
        "VramgateCertificateExpiring",
        62,
        {named("certificate_expiry_seconds"): always(20 * 86400)},
    ),
    Case(
        alert="VramgateCertificateExpiresSoon",
        severity="critical",
        minutes=70,
        changed={named("certificate_expiry_seconds"): always(-60)},
        labels=ON_REPLICA,
        with_it=("VramgateCertificateExpiring",),
    ),
    _on_replica(
        "VramgateCertificateProblem",
        17,
        {named("certificate_problems", problem="secret-forbidden"): always(1)},
        problem="secret-forbidden",
    ),
    warned("VramgateCaBundleContested", 60, {named("ca_bundle_injections_total"): growing(1)}),
    _on_replica(
        "VramgateWatchInterrupted",
        12,
        {named("watch_interrupted", resource="nodes"): always(1)},
        resource="nodes",
    ),
    _on_replica(
        "VramgateSettingsRefused",
        10,
        {named("settings_reloads_total", outcome="refused"): f"0x4 1x{MINUTES}"},
    ),
    _told(
        "VramgateDemandOverCapacity",
        90,
        {f"vramgate_admitted_predicted_bytes_total{{{CARDS}}}": growing(3 * GIB)},
        product="Tesla-T4",
        memory="15360",
        sharing="none",
    ),
    _told("VramgateJobsTooLarge", 30, {review("oom"): growing(1)}),
    warned(
        "VramgateJobsWithoutCard", 5, {named("unknown_total", code="no-class"): f"0x2 1x{MINUTES}"}
    ),
    _told("VramgateManyUnknown", 430, {review("unknown"): growing(20)}),
    warned(
        "VramgatePredictedOverCapacity",
        20,
        {'vramgate_class_predicted_bytes{product="Tesla-T4",state="running"}': always(121 * GIB)},
        product="Tesla-T4",
    ),
    warned(
        "VramgateOomNotPredicted",
        10,
        {'vramgate_oom_total{framework="pytorch",predicted="false"}': growing(1)},
        **OF_FRAMEWORK,
    ),
    _told(
        "VramgateOomPredicted",
        10,
        {'vramgate_oom_total{framework="pytorch",predicted="true"}': growing(1)},
        **OF_FRAMEWORK,
    ),
    warned(
        "VramgateEstimatesDrift",
        100,
        {
            "vramgate_estimate_error_ratio_sum": growing(1.2),
            "vramgate_estimate_error_ratio_count": growing(1),
        },
    ),
    warned(
        "VramgateAgentSilent",
        17,
        {'up{job="vramgate-system/vramgate-agent",instance="gpu-0"}': always(0)},
        job="vramgate-system/vramgate-agent",
        instance="gpu-0",
    ),
    _on_replica(
        "VramgateAgentProblem",
        17,
        {named("agent_problems", problem="nvml-missing"): always(1)},
        problem="nvml-missing",
    ),
)
