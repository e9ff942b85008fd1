"""What dcgm-exporter, kube-state-metrics and the API server show over the week.

Jobs -> Series

Only what dashboards ask for. Names: see `tests/e2e/prometheus/others.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.e2e.prometheus.week.cluster import CARDS, MINUTES, NAMESPACES, Jobs
from tests.e2e.prometheus.week.others import RESERVED, cards_of, jobs_of, used_of
from tests.e2e.prometheus.week.series import Labels, Series, Values, counted

MIB = 1 << 20
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
KEPT = 60
"""Minutes that a pod is there after its end."""
GPU = {"resource": "nvidia_com_gpu", "unit": "integer"}
CALLS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0)
"""Buckets of the API server's, seconds. Source: k8s.io/apiserver
`pkg/admission/metrics/metrics.go`."""


def dcgm(jobs: Jobs) -> Iterator[Series]:
    """Yield the memory of every card, in MiB, with the labels of new versions."""
    for at, kind in enumerate(CARDS):
        for node in range(kind.nodes):
            ours = jobs_of(jobs, at, node)
            for index, card in enumerate(cards_of(kind, node)):
                used = used_of(jobs, ours, kind, index) // MIB
                labels = {
                    "job": "dcgm-exporter",
                    "Hostname": f"{kind.product.lower()}-{node}",
                    "UUID": card.gpu,
                    "gpu": card.index,
                    "modelName": kind.product,
                    # One card says whose it is; the dashboard of a job asks for that.
                    **({"namespace": "default", "pod": "train-6-0"} if at + index == 0 else {}),
                }
                for part, values in (
                    ("USED", used),
                    ("FREE", kind.usable // MIB - used),
                    ("RESERVED", np.full(MINUTES, RESERVED // MIB)),
                ):
                    yield Series(name=f"DCGM_FI_DEV_FB_{part}", labels=labels, values=values)


def kube_state(jobs: Jobs) -> Iterator[Series]:
    """Yield phase and request of every pod while it is there, and what nodes can give."""
    target = {"job": "kube-state-metrics"}
    for job in np.flatnonzero(~jobs.is_denied).tolist():
        begins, at = int(jobs.begins[job]), int(jobs.at[job])
        ends = min(int(jobs.ends[job]), MINUTES)
        pod = {"namespace": NAMESPACES[jobs.namespace[job]], "pod": f"train-{job}", **target}
        gone = min(ends + KEPT, MINUTES)
        minute = np.arange(at, gone)
        over = "Failed" if jobs.dies[job] else "Succeeded"
        ones = {
            "Pending": minute < begins,
            "Running": (minute >= begins) & (minute < ends),
            over: minute >= ends,
        }
        never = np.zeros(len(minute), dtype=np.bool_)
        for phase in PHASES:
            labels: Labels = {**pod, "phase": phase}
            values = ones.get(phase, never).astype(np.int64)
            yield Series(name="kube_pod_status_phase", labels=labels, values=values, begins=at)
        yield Series(
            name="kube_pod_container_resource_requests",
            labels={**pod, **GPU, "container": "train"},
            values=np.full(len(minute), jobs.gpus[job]),
            begins=at,
        )
    for kind in CARDS:
        for node in range(kind.nodes):
            labels = {**target, **GPU, "node": f"{kind.product.lower()}-{node}"}
            values = np.full(MINUTES, kind.gpus)
            yield Series(name="kube_node_status_allocatable", labels=labels, values=values)


def api_server(jobs: Jobs) -> Iterator[Series]:
    """Yield how long calls of both webhooks took, and how many were ignored: none."""
    name = "apiserver_admission_webhook_admission_duration_seconds"
    calls = counted(jobs.at)
    for hook, kind in (("jobs.vramgate.dev", "validating"), ("steer.vramgate.dev", "admit")):
        labels = {"job": "apiserver", "name": hook, "operation": "CREATE", "type": kind}
        for at, bound in enumerate((*map(str, CALLS), "+Inf")):
            below: Values = calls * min(at + 60, 60 + len(CALLS)) // (60 + len(CALLS))
            yield Series(name=f"{name}_bucket", labels={**labels, "le": bound}, values=below)
        yield Series(
            name="apiserver_admission_webhook_fail_open_count",
            labels={"job": "apiserver", "name": hook, "type": kind},
            values=np.zeros(MINUTES, dtype=np.int64),
        )
