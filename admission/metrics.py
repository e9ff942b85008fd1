"""What Prometheus sees.

    one review, one estimate, the node classes -> series with closed labels

The only importer of prometheus_client. Every known label value starts at 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
    generate_latest,
)

from admission.cache import CacheResult
from admission.certificates.problems import CertificateProblem
from admission.codes import Action, Mode, Verdict
from admission.config import package_version
from admission.metric_labels import (
    BUCKETS,
    CACHE,
    CODES,
    KINDS,
    METHODS,
    NONE,
    OTHER,
    OUTCOMES,
    RELOADS,
    SOURCE_MARKS,
    SOURCES,
    WITHHELD,
    closed,
    possible_actions,
)
from admission.values import NodeClass
from estimator.errors import EstimatorError
from estimator.result import Estimate
from estimator.spec import Framework, JobSpec


class Metrics:
    """Every series of the webhook, in *registry* or one of its own: never in the process' own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = CollectorRegistry() if registry is None else registry
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry
        self._reviews = Counter(
            "vramgate_reviews_total",
            "Reviews answered.",
            ("kind", "verdict", "action", "mode"),
            registry=registry,
        )
        self._review_seconds = Histogram(
            "vramgate_review_seconds",
            "Time from a review's last byte to its answer.",
            ("kind", "cache"),
            buckets=BUCKETS,
            registry=registry,
        )
        self._estimate_seconds = Histogram(
            "vramgate_estimate_seconds",
            "Time of one question to a worker, waiting for a free one included.",
            ("framework", "method"),
            buckets=BUCKETS,
            registry=registry,
        )
        self._estimates = Counter(
            "vramgate_estimates_total",
            "Questions to workers, by how they ended.",
            ("framework", "method", "outcome"),
            registry=registry,
        )
        self._workers = Gauge(
            "vramgate_estimator_workers", "Worker processes.", ("state",), registry=registry
        )
        self._cache_requests = Counter(
            "vramgate_cache_requests_total",
            "Questions to the cache of estimates.",
            ("result",),
            registry=registry,
        )
        self._spec_source = Counter(
            "vramgate_spec_source_total",
            "Where the model of a reviewed job was read from.",
            ("source",),
            registry=registry,
        )
        self._unknown = Counter(
            "vramgate_unknown_total", "Why jobs stayed unknown.", ("code",), registry=registry
        )
        self._steered = Counter(
            "vramgate_steered_total",
            "Objects whose pods were steered to cards that hold them.",
            ("kind",),
            registry=registry,
        )
        self._withheld = Counter(
            "vramgate_would_deny_total",
            "Objects that mode warn or an exemption alone kept from being denied.",
            ("kind", "because"),
            registry=registry,
        )
        self._reloads = Counter(
            "vramgate_settings_reloads_total",
            "Changes of the settings file, by what became of them.",
            ("outcome",),
            registry=registry,
        )
        self._enabled = Gauge(
            "vramgate_policy_enabled",
            "0 while policy.enabled is false and everything passes unread.",
            registry=registry,
        )
        self._dropped = Counter(
            "vramgate_patches_dropped_total",
            "Patches that were not sent because they would not apply as meant.",
            ("kind",),
            registry=registry,
        )
        classes = ("product", "memory", "sharing")
        self._class_count = Gauge(
            "vramgate_gpu_class_count", "Nodes of a card class.", classes, registry=registry
        )
        self._class_usable = Gauge(
            "vramgate_gpu_class_usable_bytes",
            "Memory one pod can get on a card of the class.",
            classes,
            registry=registry,
        )
        self._expiry = Gauge(
            "vramgate_certificate_expiry_seconds",
            "Time until the serving certificate expires.",
            registry=registry,
        )
        self._certificate_problems = Gauge(
            "vramgate_certificate_problems",
            "What keeps the built-in certificates from being as they should: 1 while it lasts.",
            ("problem",),
            registry=registry,
        )
        build = Info("vramgate_build", "The running version.", registry=registry)
        build.info({"version": package_version()})
        self._start_at_zero()

    def reviewed(
        self, *, kind: str, verdict: Verdict, action: Action, mode: Mode, cache: str, seconds: float
    ) -> None:
        """Count one answered review."""
        known = closed(kind, KINDS)
        self._reviews.labels(known, verdict.value, action.value, mode.value).inc()
        self._review_seconds.labels(known, closed(cache, CACHE, NONE)).observe(seconds)

    def read(self, source: str) -> None:
        """Count where a job's model was read from, by the text that people are shown."""
        text = source.lower()
        label = next((label for mark, label in SOURCE_MARKS.items() if mark in text), OTHER)
        self._spec_source.labels(label).inc()

    def unknown(self, code: str) -> None:
        """Count one reason for `unknown`."""
        self._unknown.labels(closed(code, CODES)).inc()

    def steered(self, kind: str) -> None:
        """Count one object whose pods were steered."""
        self._steered.labels(closed(kind, KINDS)).inc()

    def denial_withheld(self, kind: str, because: str) -> None:
        """Count one object that mode `warn` or an exemption alone kept from being denied."""
        self._withheld.labels(closed(kind, KINDS), closed(because, WITHHELD)).inc()

    def settings_reloaded(self, outcome: str) -> None:
        """Count one change of the settings file."""
        self._reloads.labels(closed(outcome, RELOADS)).inc()

    def policy_enabled(self, is_enabled: bool) -> None:
        """Show whether anything is judged at all."""
        self._enabled.set(is_enabled)

    def patch_dropped(self, kind: str) -> None:
        """Count one patch that was not sent."""
        self._dropped.labels(closed(kind, KINDS)).inc()

    def cache_asked(self, result: CacheResult) -> None:
        """Count one question to the cache."""
        self._cache_requests.labels(result.value).inc()

    def estimated(
        self, spec: JobSpec, outcome: Sequence[Estimate] | EstimatorError, *, seconds: float
    ) -> None:
        """Count one question to a worker."""
        framework, method, ending = spec.framework.value, NONE, "ok"
        if isinstance(outcome, EstimatorError):
            ending = outcome.kind
        elif outcome:
            method = outcome[0].method.value
        self._estimate_seconds.labels(framework, method).observe(seconds)
        self._estimates.labels(framework, method, ending).inc()

    def workers(self, states: Mapping[str, int]) -> None:
        """Show how many workers are in each state, in place of what was shown before."""
        self._workers.clear()
        for state, count in states.items():
            self._workers.labels(state).set(count)

    def classes(self, classes: Iterable[NodeClass]) -> None:
        """Show the cards of the cluster in place of those shown before."""
        counts: dict[tuple[str, str, str], int] = {}
        usable: dict[tuple[str, str, str], int] = {}
        for found in classes:
            key = _class_labels(found)
            counts[key] = counts.get(key, 0) + found.count
            if found.device and found.device.budget_bytes is not None:
                usable[key] = min(usable.get(key, 1 << 62), found.device.budget_bytes)
        for gauge, values in ((self._class_count, counts), (self._class_usable, usable)):
            gauge.clear()
            for labels, value in values.items():
                gauge.labels(*labels).set(value)

    def certificate_expires(
        self, timestamp: float, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Show the time left until *timestamp* (seconds since 1970) from now on."""
        self._expiry.set_function(lambda: timestamp - clock())

    def certificate_problems(self, problems: Collection[CertificateProblem]) -> None:
        """Show which problems the certificates have now."""
        for problem in CertificateProblem:
            self._certificate_problems.labels(problem.value).set(problem in problems)

    def text(self) -> bytes:
        """Return the exposition that `/metrics` answers with."""
        return generate_latest(self._registry)

    def _start_at_zero(self) -> None:
        self.certificate_problems(())
        for kind in KINDS:
            for mode in Mode:
                for verdict in Verdict:
                    for action in possible_actions(verdict, mode):
                        self._reviews.labels(kind, verdict.value, action.value, mode.value)
            for cache in CACHE:
                self._review_seconds.labels(kind, cache)
            self._steered.labels(kind)
            self._dropped.labels(kind)
            for because in WITHHELD:
                self._withheld.labels(kind, because)
        self.policy_enabled(True)
        for reload in RELOADS:
            self._reloads.labels(reload)
        for framework in Framework:
            for method in METHODS:
                self._estimate_seconds.labels(framework.value, method)
                for outcome in OUTCOMES:
                    if (method == NONE) is (outcome != "ok"):
                        self._estimates.labels(framework.value, method, outcome)
        for result in CacheResult:
            self._cache_requests.labels(result.value)
        for source in SOURCES:
            self._spec_source.labels(source)
        for code in CODES:
            self._unknown.labels(code)


def _class_labels(found: NodeClass) -> tuple[str, str, str]:
    """Return product, total memory in MiB (as the node label has it) and sharing."""
    total = found.device.total_bytes if found.device else None
    memory = "unknown" if total is None else str(total >> 20)
    return (found.product or "unknown", memory, found.sharing)
