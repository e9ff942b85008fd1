"""Rows about capacity that exporters of others can fill: dcgm-exporter, kube-state-metrics."""

from __future__ import annotations

from deploy.monitoring.dashboards.parts import BYTES, COUNT, SHARE, Kind, Panel, Query, Row

_NODE = (
    'label_replace(label_replace({}, "node", "$1", "Hostname", "(.+)"), '
    '"node", "$1", "hostname", "(.+)")'
)
"""dcgm-exporter calls a node `Hostname` in old versions and `hostname` in new ones."""
_USED = "DCGM_FI_DEV_FB_USED"
_GPUS = 'resource=~"nvidia_com_.+|amd_com_gpu"'

DCGM = Row(
    title="Measured by DCGM",
    needs="dcgm-exporter and the recording rules",
    panels=(
        Panel(
            title="Memory used by node",
            description="Of whole cards, whoever uses them, by node.",
            unit=BYTES,
            kind=Kind.STACKED,
            queries=(
                Query(expr=f"sum by (node) ({_NODE.format(_USED)}) * 1048576", legend="{{node}}"),
            ),
        ),
        Panel(
            title="Memory used, as a share",
            description="Of all cards of a model, the driver's own part left in the total.",
            unit=SHARE,
            queries=(Query(expr="vramgate:dcgm_memory_used:ratio", legend="{{modelName}}"),),
        ),
    ),
)

QUEUE = Row(
    title="Queue",
    needs="kube-state-metrics and the recording rules",
    panels=(
        Panel(
            title="GPU pods that wait",
            description="Pending pods that ask for GPUs, by namespace.",
            unit=COUNT,
            kind=Kind.STACKED,
            queries=(Query(expr="vramgate:gpu_pods_waiting:count", legend="{{namespace}}"),),
        ),
        Panel(
            title="GPUs asked for and there",
            description="By resource: requests of pods that run or wait, and what nodes can give.",
            unit=COUNT,
            queries=(
                Query(expr="vramgate:gpus_requested:sum", legend="asked for: {{resource}}"),
                Query(
                    expr=f"sum by (resource) (kube_node_status_allocatable{{{_GPUS}}})",
                    legend="there: {{resource}}",
                ),
            ),
        ),
    ),
)
