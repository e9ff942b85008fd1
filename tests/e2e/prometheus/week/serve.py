"""What the replicas of the webhook show over the week.

Jobs -> Series of each replica

Each job is reviewed by /mutate and /validate of its replica, and is estimated unless its like was
before.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from admission.codes import Mode, Verdict
from admission.metric_labels import METHODS, possible_actions
from admission.metric_series import BUCKETS
from admission.metric_values import admission_of
from admission.metrics import Metrics
from estimator.spec import Framework
from estimator.units import GIB
from tests.admission.test_metrics_bounds import fitting, judgement
from tests.e2e.prometheus.week.cluster import (
    CARDS,
    ENFORCED,
    FRAMEWORKS,
    KINDS,
    MINUTES,
    NAMESPACES,
    VERDICTS,
    Jobs,
    activity,
    classes,
)
from tests.e2e.prometheus.week.series import Key, Series, Values, counted, key, of_target

NUM_REPLICAS = 2
NUM_WORKLOADS = 20
REVIEWS_A_JOB = 2
CERTIFICATE_SECONDS = 200 * 86_400
CODES = ("no-model", "no-command", "late", "document", "no-class")
SOURCES = ("annotation", "args", "config", "env", "registry", "default")
Draw = np.random.Generator
Changes = dict[Key, Values]


def serve(jobs: Jobs, seed: int) -> Iterator[Series]:
    """Yield the series of every replica."""
    draw = np.random.default_rng(seed + 1)
    for replica in range(NUM_REPLICAS):
        target = {
            "job": "vramgate",
            "namespace": "vramgate-system",
            "pod": f"vramgate-{replica}",
            "instance": f"10.0.0.{replica + 1}:8080",
        }
        changes = _changes(jobs, jobs.replica == replica, draw)
        yield from of_target(_exposition(), changes, target)


def _exposition() -> str:
    """Return what a replica shows once it knows the cluster and has admitted some jobs."""
    metrics = Metrics(CollectorRegistry())
    metrics.show_workloads(NUM_WORKLOADS)
    metrics.classes(classes())
    metrics.policy_enabled(True)
    metrics.workers({"starting": 0, "idle-template": 1, "busy": 0, "waiting": 0, "dead": 0})
    for number in range(NUM_WORKLOADS):
        admission = admission_of(judgement(fitting(peak=(number + 2) * GIB)))
        metrics.admitted(admission, name=f"train-{number}")
    return metrics.text().decode()


def _changes(jobs: Jobs, ours: NDArray[np.bool_], draw: Draw) -> Changes:
    return {
        **_reviews(jobs, ours, draw),
        **_causes(jobs, ours, draw),
        **_estimates(jobs, ours, draw),
        **_admitted(jobs, ours),
        key("vramgate_certificate_expiry_seconds"): CERTIFICATE_SECONDS - 60 * np.arange(MINUTES),
    }


def _reviews(jobs: Jobs, ours: NDArray[np.bool_], draw: Draw) -> Changes:
    found: Changes = {}
    counter = partial(key, "vramgate_reviews_total")
    for kind, verdict, mode in np.ndindex(len(KINDS), len(VERDICTS), 2):
        told = (Mode.WARN, Mode.ENFORCE)[mode]
        judged = Verdict(VERDICTS[verdict])
        action = possible_actions(judged, told)[-1 if VERDICTS[verdict] == "oom" else 0]
        enforced = np.isin(jobs.namespace, [NAMESPACES.index(name) for name in ENFORCED])
        chosen = ours & (jobs.kind == kind) & (jobs.verdict == verdict) & (enforced == bool(mode))
        labels = {"kind": KINDS[kind], "verdict": judged.value, "action": action.value}
        found[counter(labels, mode=told.value)] = REVIEWS_A_JOB * counted(jobs.at[chosen])
    # What has no GPU is most of what a cluster makes.
    others = np.cumsum(draw.poisson(3 * activity()))
    found[counter(kind="Job", verdict="skipped", action="allow", mode="warn")] = others
    misses = ours & (draw.random(len(jobs)) < 0.3)
    found |= _histogram("vramgate_review_seconds", {"cache": "none"}, others, 0.001, draw)
    for cache, chosen, seconds in (("hit", ours & ~misses, 0.003), ("miss", misses, 0.9)):
        count = REVIEWS_A_JOB * counted(jobs.at[chosen])
        found |= _histogram("vramgate_review_seconds", {"cache": cache}, count, seconds, draw)
    late = counted(jobs.at[misses & (draw.random(len(jobs)) < 0.03)])
    return found | _histogram("vramgate_review_seconds", {"cache": "late"}, late, 4.5, draw)


def _causes(jobs: Jobs, ours: NDArray[np.bool_], draw: Draw) -> Changes:
    unknown = jobs.verdict == VERDICTS.index("unknown")
    denied = ours & (jobs.verdict == VERDICTS.index("oom"))
    codes = draw.choice(len(CODES), size=len(jobs), p=(0.5, 0.2, 0.1, 0.15, 0.05))
    sources = draw.choice(len(SOURCES), size=len(jobs), p=(0.2, 0.45, 0.15, 0.05, 0.1, 0.05))
    found: Changes = {}
    for at, code in enumerate(CODES):
        found[key("vramgate_unknown_total", code=code)] = counted(
            jobs.at[ours & unknown & (codes == at)]
        )
    for at, source in enumerate(SOURCES):
        found[key("vramgate_spec_source_total", source=source)] = counted(
            jobs.at[ours & ~unknown & (sources == at)]
        )
    for at, kind in enumerate(KINDS):
        of_kind = jobs.kind == at
        found[key("vramgate_would_deny_total", kind=kind, because="mode-warn")] = counted(
            jobs.at[denied & of_kind & ~jobs.is_denied]
        )
        steered = ours & of_kind & (draw.random(len(jobs)) < 0.2)
        found[key("vramgate_steered_total", kind=kind)] = counted(jobs.at[steered])
    return found


def _estimates(jobs: Jobs, ours: NDArray[np.bool_], draw: Draw) -> Changes:
    found: Changes = {}
    hits = draw.random(len(jobs)) < 0.7
    for result, chosen in (("hit", ours & hits), ("miss", ours & ~hits)):
        found[key("vramgate_cache_requests_total", result=result)] = counted(jobs.at[chosen])
    fails = draw.random(len(jobs)) < 0.04
    for at, framework in enumerate(FRAMEWORKS):
        method = METHODS[Framework(framework)][0]
        asked = ours & ~hits & (jobs.framework == at)
        for how, ending, chosen in (
            (method, "ok", asked & ~fails),
            ("none", "unsupported", asked & fails),
        ):
            labels = {"framework": framework, "method": how}
            count = counted(jobs.at[chosen])
            found[key("vramgate_estimates_total", labels, outcome=ending)] = count
            found |= _histogram("vramgate_estimate_seconds", labels, count, 0.8, draw)
    busy = draw.poisson(0.4 * activity())
    found[key("vramgate_estimator_workers", state="busy")] = busy
    return found


def _admitted(jobs: Jobs, ours: NDArray[np.bool_]) -> Changes:
    known = ours & ~jobs.is_denied & (jobs.verdict != VERDICTS.index("unknown"))
    found: Changes = {}
    for at, card in enumerate(CARDS):
        chosen = known & (jobs.card == at)
        labels = {
            "product": card.product,
            "memory": str(card.usable >> 20),
            "sharing": "none",
        }
        amounts = jobs.peak[chosen] * jobs.gpus[chosen]
        found[key("vramgate_admitted_predicted_bytes_total", labels)] = counted(
            jobs.at[chosen], amounts
        )
    return found


def _histogram(
    name: str, labels: dict[str, str], count: Values, median: float, draw: Draw
) -> Changes:
    """Return a histogram of *count*, in which shares lie below the bounds as around *median*."""
    spread = 0.6
    sample = median * np.exp(spread * draw.standard_normal(2000))
    found: Changes = {key(f"{name}_bucket", labels, le="+Inf"): count}
    for bound in BUCKETS:
        below = np.floor(count * np.mean(sample <= bound)).astype(np.int64)
        found[key(f"{name}_bucket", labels, le=str(bound))] = below
    found[key(f"{name}_count", labels)] = count
    found[key(f"{name}_sum", labels)] = (count * 1000 * sample.mean()).astype(np.int64) / 1000
    return found
