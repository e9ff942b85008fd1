"""What each series is called, means and is labelled with.

    a name -> help text, labels

docs/metrics.md says more of each; a test compares.
"""

from __future__ import annotations

from dataclasses import dataclass

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: from a cached review to the longest webhook timeout anybody uses."""
_CLASS = ("product", "memory", "sharing")


@dataclass(frozen=True, slots=True)
class Series:
    """One metric."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()


REVIEWS = Series(
    "vramgate_reviews_total", "Reviews answered.", ("kind", "verdict", "action", "mode")
)
REVIEW_SECONDS = Series(
    "vramgate_review_seconds", "Time from a review's last byte to its answer.", ("cache",)
)
ESTIMATE_SECONDS = Series(
    "vramgate_estimate_seconds",
    "Time of one question to a worker, waiting for a free one included.",
    ("framework", "method"),
)
ESTIMATES = Series(
    "vramgate_estimates_total",
    "Questions to workers, by how they ended.",
    ("framework", "method", "outcome"),
)
ESTIMATOR_WORKERS = Series("vramgate_estimator_workers", "Worker processes.", ("state",))
ESTIMATOR_ISOLATION = Series(
    "vramgate_estimator_isolation",
    "Whether the kernel gives what isolates worker processes, by feature.",
    ("feature",),
)
CACHE_REQUESTS = Series(
    "vramgate_cache_requests_total", "Questions to the cache of estimates.", ("result",)
)
SPEC_SOURCE = Series(
    "vramgate_spec_source_total", "Where the model of a reviewed job was read from.", ("source",)
)
UNKNOWN = Series("vramgate_unknown_total", "Why jobs stayed unknown.", ("code",))
STEERED = Series(
    "vramgate_steered_total", "Objects whose pods were steered to cards that hold them.", ("kind",)
)
WOULD_DENY = Series(
    "vramgate_would_deny_total",
    "Objects that mode warn or an exemption alone kept from being denied.",
    ("kind", "because"),
)
SETTINGS_RELOADS = Series(
    "vramgate_settings_reloads_total",
    "Changes of the settings file, by what became of them.",
    ("outcome",),
)
POLICY_ENABLED = Series(
    "vramgate_policy_enabled", "0 while policy.enabled is false and everything passes unread."
)
PATCHES_DROPPED = Series(
    "vramgate_patches_dropped_total",
    "Patches that were not sent because they would not apply as meant.",
    ("kind",),
)
GPU_CLASS_COUNT = Series("vramgate_gpu_class_count", "Nodes of a card class.", _CLASS)
GPU_CLASS_GPUS = Series(
    "vramgate_gpu_class_gpus",
    "GPUs, slices or shares of a card class that pods can ask for.",
    _CLASS,
)
GPU_CLASS_USABLE_BYTES = Series(
    "vramgate_gpu_class_usable_bytes", "Memory one pod can get on a card of the class.", _CLASS
)
ADMITTED_PREDICTED_BYTES = Series(
    "vramgate_admitted_predicted_bytes_total",
    "Predicted peak of the jobs that were admitted, over all their GPUs.",
    _CLASS,
)
WORKLOAD_ESTIMATE_BYTES = Series(
    "vramgate_workload_estimate_bytes",
    "What one GPU of a workload that was admitted lately needs (metrics.workloads).",
    ("namespace", "workload_kind", "workload", "bound"),
)
CERTIFICATE_EXPIRY_SECONDS = Series(
    "vramgate_certificate_expiry_seconds", "Time until the serving certificate expires."
)
CERTIFICATE_PROBLEMS = Series(
    "vramgate_certificate_problems",
    "What keeps the certificate from being as it should: 1 while it lasts.",
    ("problem",),
)
CA_BUNDLE_INJECTIONS = Series(
    "vramgate_ca_bundle_injections_total", "Registrations that were given the CA which they lacked."
)
WATCH_INTERRUPTED = Series(
    "vramgate_watch_interrupted",
    "1 while the API server does not let us follow these objects; what is known is kept.",
    ("resource",),
)
BUILD = Series("vramgate_build", "The running version.")
