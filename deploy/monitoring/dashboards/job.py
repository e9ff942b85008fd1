"""The dashboard about one job: its estimate, its card, its live use."""

from __future__ import annotations

from deploy.monitoring.dashboards.parts import BYTES, Board, Kind, Panel, Query, Row, Variable

CHOSEN = 'namespace="$namespace",workload_kind="$kind",workload="$workload"'
ESTIMATE = f"max by (bound) (vramgate_workload_estimate_bytes{{{CHOSEN}}})"
_PODS = 'namespace="$namespace",pod=~"$workload.*"'
_EXPORTED = 'exported_namespace="$namespace",exported_pod=~"$workload.*"'

PREDICTED = Row(
    title="Estimate",
    panels=(
        Panel(
            title="One GPU of the job",
            description="`least`: below it the job dies. `enough`: with it the job fits. "
            "`peak`: what it "
            "will take left alone. `most`: for planning. `usable`: what it can get on its card.",
            unit=BYTES,
            kind=Kind.BARS,
            queries=(Query(expr=ESTIMATE, legend="{{bound}}"),),
        ),
        Panel(
            title="Over time",
            description="A job of the same name that is submitted again is estimated again.",
            unit=BYTES,
            queries=(Query(expr=ESTIMATE, legend="{{bound}}"),),
        ),
    ),
)

LIVE = Row(
    title="Live use",
    needs="Vramgate's agent",
    panels=(
        Panel(
            title="Measured peak of each pod, and the estimate",
            description="The largest of a pod's GPUs since it started.",
            unit=BYTES,
            width=24,
            queries=(
                Query(
                    expr=f"max by (pod) (vramgate_pod_gpu_memory_peak_bytes{{{_PODS}}})",
                    legend="{{pod}}",
                ),
                Query(expr=ESTIMATE, legend="{{bound}}"),
            ),
        ),
    ),
)

DCGM = Row(
    title="Live use",
    needs="dcgm-exporter",
    panels=(
        Panel(
            title="Memory used of the GPUs of each pod, and the estimate",
            description="Whole cards: what others have on a shared card is in it. Both ways in "
            "which "
            "Prometheus may name the pod are asked.",
            unit=BYTES,
            width=24,
            queries=(
                Query(
                    expr=f"max by (pod) (DCGM_FI_DEV_FB_USED{{{_PODS}}}) * 1048576 or "
                    "max by (pod) (label_replace("
                    f'DCGM_FI_DEV_FB_USED{{{_EXPORTED}}}, "pod", "$1", "exported_pod", "(.+)")'
                    ") * 1048576",
                    legend="{{pod}}",
                ),
                Query(expr=ESTIMATE, legend="{{bound}}"),
            ),
        ),
    ),
)


def _values(label: str, *chosen: str) -> str:
    selector = ",".join(chosen)
    return f"label_values(vramgate_workload_estimate_bytes{{{selector}}}, {label})"


BOARD = Board(
    name="job",
    title="A job",
    description="One job's estimate beside its live use. Shown are the jobs that were admitted "
    "last, "
    "as many as the setting metrics.workloads says.",
    variables=(
        Variable(name="namespace", label="Namespace", query=_values("namespace"), multi=False),
        Variable(
            name="kind",
            label="Kind",
            query=_values("workload_kind", 'namespace="$namespace"'),
            multi=False,
        ),
        Variable(
            name="workload",
            label="Job",
            query=_values("workload", 'namespace="$namespace"', 'workload_kind="$kind"'),
            multi=False,
        ),
    ),
    rows=(PREDICTED, LIVE, DCGM),
)
