"""What Prometheus sees.

    one review, one estimate, the node classes -> series with closed labels

Of the process that answers reviews, the only importer of prometheus_client. Every known label value
starts at 0.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
    generate_latest,
)

from admission import metric_series as series
from admission.cache import CacheResult
from admission.certificates.problems import CertificateProblem
from admission.codes import Action, Mode, Verdict
from admission.metric_labels import (
    CACHE,
    CODES,
    JUDGED,
    KINDS,
    METHODS,
    NONE,
    OTHER,
    OUTCOMES,
    RELOADS,
    SOURCE_MARKS,
    SOURCES,
    WITHHELD,
    WORKER_STATES,
    closed,
    possible_actions,
)
from admission.metric_series import BUCKETS, Series
from admission.metric_values import (
    BOUNDS,
    OTHERS,
    Admission,
    ClassLabels,
    Latest,
    WorkloadLabels,
    class_rows,
)
from admission.outages import Watched
from admission.values import NodeClass
from admission.version import package_version
from estimator.errors import EstimatorError
from estimator.processes.jail import FEATURES, Isolation
from estimator.result import Estimate
from estimator.spec import Framework, JobSpec

Tally = Callable[[float], None]
"""Counts one review that took so many seconds."""


class Metrics:
    """Every series of the webhook, in *registry* or one of its own: never in the process' own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = CollectorRegistry() if registry is None else registry
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry
        self._reviews = self._counter(series.REVIEWS)
        self._review_seconds = self._histogram(series.REVIEW_SECONDS)
        self._estimate_seconds = self._histogram(series.ESTIMATE_SECONDS)
        self._estimates = self._counter(series.ESTIMATES)
        self._workers = self._gauge(series.ESTIMATOR_WORKERS)
        self._isolation = self._gauge(series.ESTIMATOR_ISOLATION)
        self._cache_requests = self._counter(series.CACHE_REQUESTS)
        # To find a series by its labels takes longer than to count. These are never taken out.
        self._cache_requests_of = functools.cache(self._cache_requests.labels)
        self._spec_source = self._counter(series.SPEC_SOURCE)
        self._spec_source_of = functools.cache(self._spec_source.labels)
        self._unknown = self._counter(series.UNKNOWN)
        self._steered = self._counter(series.STEERED)
        self._steered_of = functools.cache(self._steered.labels)
        self._withheld = self._counter(series.WOULD_DENY)
        self._reloads = self._counter(series.SETTINGS_RELOADS)
        self._enabled = self._gauge(series.POLICY_ENABLED)
        self._dropped = self._counter(series.PATCHES_DROPPED)
        self._class_count = self._gauge(series.GPU_CLASS_COUNT)
        self._class_gpus = self._gauge(series.GPU_CLASS_GPUS)
        self._class_usable = self._gauge(series.GPU_CLASS_USABLE_BYTES)
        self._admitted = self._counter(series.ADMITTED_PREDICTED_BYTES)
        self._workload_estimate = self._gauge(series.WORKLOAD_ESTIMATE_BYTES)
        self._shown_classes: frozenset[ClassLabels] = frozenset()
        self._latest = Latest()
        self._expiry = self._gauge(series.CERTIFICATE_EXPIRY_SECONDS)
        self._certificate_problems = self._gauge(series.CERTIFICATE_PROBLEMS)
        self._injections = self._counter(series.CA_BUNDLE_INJECTIONS)
        self._interrupted = self._gauge(series.WATCH_INTERRUPTED)
        build = Info(series.BUILD.name, series.BUILD.meaning, registry=registry)
        build.info({"version": package_version()})
        self._start_at_zero()

    def _counter(self, shown: Series) -> Counter:
        return Counter(shown.name, shown.meaning, shown.labels, registry=self._registry)

    def _gauge(self, shown: Series) -> Gauge:
        return Gauge(shown.name, shown.meaning, shown.labels, registry=self._registry)

    def _histogram(self, shown: Series) -> Histogram:
        return Histogram(
            shown.name, shown.meaning, shown.labels, buckets=BUCKETS, registry=self._registry
        )

    def reviews(
        self, *, kind: str, verdict: Verdict, action: Action, mode: Mode, cache: str
    ) -> Tally:
        """Return what counts one answered review of these: to find its series takes longer."""
        labels = (closed(kind, KINDS), verdict.value, action.value, mode.value)
        counter = self._reviews.labels(*labels)
        histogram = self._review_seconds.labels(closed(cache, CACHE, NONE))

        def count(seconds: float) -> None:
            counter.inc()
            histogram.observe(seconds)

        return count

    def read(self, source: str) -> None:
        """Count where a job's model was read from, by the text that people are shown."""
        self._spec_source_of(_source_label(source)).inc()

    def unknown(self, code: str) -> None:
        """Count one reason for `unknown`."""
        self._unknown.labels(closed(code, CODES)).inc()

    def steered(self, kind: str) -> None:
        """Count one object whose pods were steered."""
        self._steered_of(closed(kind, KINDS)).inc()

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
        self._cache_requests_of(result.value).inc()

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

    def isolation(self, isolation: Isolation | None) -> None:
        """Show what the kernel gives that isolates workers; None before a template is ready."""
        if isolation is not None:
            for feature in FEATURES:
                self._isolation.labels(feature).set(feature not in isolation.missing)

    def classes(self, classes: Iterable[NodeClass]) -> None:
        """Show the cards of the cluster in place of those shown before."""
        rows = class_rows(classes)
        for gauge in (self._class_count, self._class_gpus, self._class_usable):
            gauge.clear()
        for labels, row in rows.items():
            self._class_count.labels(*labels).set(row.nodes)
            self._class_gpus.labels(*labels).set(row.gpus)
            if row.usable is not None:
                self._class_usable.labels(*labels).set(row.usable)
            self._admitted.labels(*labels)
        # What was counted of a class that is gone ends with it: the number of series is bounded.
        for labels in self._shown_classes - rows.keys() - {OTHERS}:
            self._admitted.remove(*labels)
        self._shown_classes = frozenset(rows)

    def admitted(self, admission: Admission, *, name: str) -> None:
        """Count what a job that was admitted will take, and show it if workloads are shown."""
        for labels, nbytes in admission.nbytes.items():
            shown = labels if labels in self._shown_classes else OTHERS
            self._admitted.labels(*shown).inc(nbytes)
        if not self._latest.keeps_any or not admission.bounds:
            return
        labels = (admission.namespace, closed(admission.kind, KINDS), name)
        for bound, nbytes in admission.bounds.items():
            self._workload_estimate.labels(*labels, bound).set(nbytes)
        self._forget(self._latest.add(labels))

    def show_workloads(self, most: int) -> None:
        """Show the estimates of the last *most* workloads that were admitted."""
        self._forget(self._latest.keep(most))

    def certificate_expires(
        self, timestamp: float, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Show the time left until *timestamp* (seconds since 1970) from now on."""
        self._expiry.set_function(lambda: timestamp - clock())

    def certificate_problems(self, problems: Collection[CertificateProblem]) -> None:
        """Show which problems the certificates have now."""
        for problem in CertificateProblem:
            self._certificate_problems.labels(problem.value).set(problem in problems)

    def ca_bundle_injected(self) -> None:
        """Count one registration that was given the CA which it lacked."""
        self._injections.inc()

    def watches_interrupted(self, resources: Collection[str]) -> None:
        """Show which resources cannot be followed now, by their plural names."""
        for watched in Watched:
            self._interrupted.labels(watched.value).set(watched.value in resources)

    def _forget(self, workloads: Iterable[WorkloadLabels]) -> None:
        for labels in workloads:
            for bound in BOUNDS:
                with suppress(KeyError):  # a card of unknown memory has no `usable`
                    self._workload_estimate.remove(*labels, bound)

    def text(self) -> bytes:
        """Return the exposition that `/metrics` answers with."""
        return generate_latest(self._registry)

    def _start_at_zero(self) -> None:
        self.certificate_problems(())
        self.watches_interrupted(())
        self.workers(dict.fromkeys(WORKER_STATES, 0))
        self._expiry.set(math.nan)  # nothing is served yet: 0 would say that it has expired
        self._admitted.labels(*OTHERS)
        for kind in KINDS:
            for mode in Mode:
                for verdict in Verdict:
                    for action in possible_actions(verdict, mode, is_judged=kind in JUDGED):
                        self._reviews.labels(kind, verdict.value, action.value, mode.value)
        for kind in JUDGED:
            self._steered.labels(kind)
            self._dropped.labels(kind)
            for because in WITHHELD:
                self._withheld.labels(kind, because)
        for cache in CACHE:
            self._review_seconds.labels(cache)
        self.policy_enabled(True)
        for reload in RELOADS:
            self._reloads.labels(reload)
        for framework in Framework:
            for method in METHODS[framework]:
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


@functools.lru_cache(maxsize=64)
def _source_label(source: str) -> str:
    text = source.lower()
    return next((label for mark, label in SOURCE_MARKS.items() if mark in text), OTHER)
