"""The dashboard about what there is and what is asked for."""

from __future__ import annotations

from deploy.monitoring.dashboards.exporters import DCGM, QUEUE
from deploy.monitoring.dashboards.parts import (
    BYTES,
    COUNT,
    SHARE,
    Board,
    Kind,
    Panel,
    Query,
    Row,
    Variable,
)

CLASS = "product, memory, sharing"
OF_CLASS = "{{product}} {{memory}} MiB {{sharing}}"
CHOSEN = '{product=~"$product"}'


def shown(metric: str) -> str:
    """Return a gauge about classes: every replica shows the same."""
    return f"max by ({CLASS}) ({metric}{CHOSEN})"


CAPACITY = (
    f"max by ({CLASS}) (vramgate_gpu_class_gpus{CHOSEN} * vramgate_gpu_class_usable_bytes{CHOSEN})"
)


def demand(window: str) -> str:
    """Return the predicted peaks of what was admitted within *window*, by class."""
    return f"sum by ({CLASS}) (increase(vramgate_admitted_predicted_bytes_total{CHOSEN}[{window}]))"


NOW = Row(
    title="Now",
    panels=(
        Panel(
            title="GPUs",
            description="GPUs, slices and shares that pods can ask for, of nodes seen in the "
            "last days.",
            unit=COUNT,
            kind=Kind.NUMBER,
            width=6,
            height=5,
            queries=(Query(expr=f"sum({shown('vramgate_gpu_class_gpus')})"),),
        ),
        Panel(
            title="Memory of all GPUs",
            description="What pods can get, the drivers' own part left out.",
            unit=BYTES,
            kind=Kind.NUMBER,
            width=6,
            height=5,
            queries=(Query(expr=f"sum({CAPACITY})"),),
        ),
        Panel(
            title="Nodes with GPUs",
            description="A node with two kinds of cards, or slices, counts for each.",
            unit=COUNT,
            kind=Kind.NUMBER,
            width=6,
            height=5,
            queries=(Query(expr=f"sum({shown('vramgate_gpu_class_count')})"),),
        ),
        Panel(
            title="Classes of unknown memory",
            description="Jobs that may only go there are `unknown`. `vramgate nodes` says what "
            "is missing.",
            unit=COUNT,
            kind=Kind.NUMBER,
            width=6,
            height=5,
            warn_above=1,
            queries=(
                Query(
                    expr=f"count({shown('vramgate_gpu_class_count')} "
                    f"unless {shown('vramgate_gpu_class_usable_bytes')}) or vector(0)"
                ),
            ),
        ),
        Panel(
            title="Node classes",
            description="One row a kind of card, as the webhook sees the cluster now.",
            unit=COUNT,
            kind=Kind.TABLE,
            queries=(
                Query(expr=shown("vramgate_gpu_class_count"), legend="nodes"),
                Query(expr=shown("vramgate_gpu_class_gpus"), legend="GPUs"),
                Query(expr=shown("vramgate_gpu_class_usable_bytes"), legend="usable a GPU"),
                Query(expr=CAPACITY, legend="usable in all"),
            ),
            units={"usable a GPU": BYTES, "usable in all": BYTES},
        ),
        Panel(
            title="The largest job that a free GPU holds",
            description="A job fits where its `enough` is at most this.",
            unit=BYTES,
            kind=Kind.BARS,
            queries=(Query(expr=shown("vramgate_gpu_class_usable_bytes"), legend=OF_CLASS),),
        ),
    ),
)

DEMAND = Row(
    title="Demand",
    panels=(
        Panel(
            title="Admitted within an hour, and what there is",
            description="Predicted peaks of admitted jobs over all their GPUs, by the class "
            "that holds "
            "them best, against the memory of the class. It says nothing of when jobs end.",
            unit=BYTES,
            queries=(
                Query(expr=demand("1h"), legend=f"admitted: {OF_CLASS}"),
                Query(expr=CAPACITY, legend=f"there is: {OF_CLASS}"),
            ),
        ),
        Panel(
            title="Admitted within an hour, as a share of what there is",
            description="Above 1 jobs queue unless others end within the hour.",
            unit=SHARE,
            warn_above=1,
            queries=(Query(expr=f"({demand('1h')}) / on ({CLASS}) ({CAPACITY})", legend=OF_CLASS),),
        ),
        Panel(
            title="Jobs that ask for GPUs no node has",
            description="Their selectors, tolerations or GPU counts leave no node. Their pods "
            "wait.",
            unit=COUNT,
            queries=(
                Query(
                    expr='sum(increase(vramgate_unknown_total{code="no-class"}[1h]))',
                    legend="within an hour",
                ),
            ),
        ),
        Panel(
            title="Jobs too large for every card they may use",
            description="Reviews with the verdict `oom`, by what was done, where the mode is not "
            "`off`.",
            unit=COUNT,
            queries=(
                Query(
                    expr="sum by (action) "
                    '(increase(vramgate_reviews_total{verdict="oom",mode!="off"}[1h]))',
                    legend="{{action}}",
                ),
            ),
        ),
    ),
)

MONTH = Row(
    title="A month",
    panels=(
        Panel(
            title="Memory there was",
            description="What pods could get, by class.",
            unit=BYTES,
            kind=Kind.STACKED,
            span="30d",
            queries=(Query(expr=CAPACITY, legend=OF_CLASS),),
        ),
        Panel(
            title="Admitted within a day",
            description="Predicted peaks of admitted jobs over all their GPUs, by class.",
            unit=BYTES,
            kind=Kind.STACKED,
            span="30d",
            queries=(Query(expr=demand("1d"), legend=OF_CLASS),),
        ),
    ),
)

PREDICTED = Row(
    title="Predicted",
    needs="Vramgate's controller",
    panels=(
        Panel(
            title="Predicted use",
            description="What the pods that wait and run are predicted to take, by product.",
            unit=BYTES,
            kind=Kind.STACKED,
            queries=(
                Query(
                    expr=f"max by (product, state) (vramgate_class_predicted_bytes{CHOSEN})",
                    legend="{{product}} {{state}}",
                ),
            ),
        ),
        Panel(
            title="Free by prediction",
            description="Memory of a product's cards less what running pods are predicted to take.",
            unit=BYTES,
            queries=(
                Query(
                    expr=f"sum by (product) ({CAPACITY}) - on (product) max by (product) "
                    f'(vramgate_class_predicted_bytes{{product=~"$product",state="running"}})',
                    legend="{{product}}",
                ),
            ),
        ),
    ),
)

MEASURED = Row(
    title="Measured",
    needs="Vramgate's agent",
    panels=(
        Panel(
            title="Memory used",
            description="Of whole cards and MIG instances, whoever uses them, and what there is.",
            unit=BYTES,
            queries=(
                Query(
                    expr=f"sum by (product) (vramgate_gpu_memory_used_bytes{CHOSEN})",
                    legend="used: {{product}}",
                ),
                Query(
                    expr=f"sum by (product) (vramgate_gpu_memory_total_bytes{CHOSEN})",
                    legend="there is: {{product}}",
                ),
            ),
        ),
        Panel(
            title="Peaks of pods",
            description="What the pods of a namespace have held at most, each since it started.",
            unit=BYTES,
            kind=Kind.STACKED,
            queries=(
                Query(
                    expr="sum by (namespace) (vramgate_pod_gpu_memory_peak_bytes)",
                    legend="{{namespace}}",
                ),
            ),
        ),
    ),
)

BOARD = Board(
    name="capacity",
    title="Capacity",
    description="Cards by class, what is asked of them, and a month of both.",
    variables=(
        Variable(
            name="product", label="Product", query="label_values(vramgate_gpu_class_count, product)"
        ),
    ),
    rows=(NOW, DEMAND, MONTH, PREDICTED, MEASURED, DCGM, QUEUE),
)
