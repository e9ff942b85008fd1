"""The row about what the controller does after admission."""

from __future__ import annotations

from deploy.monitoring.dashboards.health import RATE
from deploy.monitoring.dashboards.parts import COUNT, Kind, Panel, Query, Row

_ACTS = "vramgate_controller_acts_total"


def counts(metric: str, by: str, legend: str) -> tuple[Query, ...]:
    """Return a counter's increase from point to point, by *by*."""
    return (Query(expr=f"sum by ({by}) (increase({metric}[{RATE}]))", legend=legend),)


AFTER = Row(
    title="After admission",
    needs="Vramgate's controller",
    panels=(
        Panel(
            title="Controllers at work",
            description="One, of however many there are. With none nothing is moved or learnt.",
            unit=COUNT,
            kind=Kind.NUMBER,
            width=6,
            warn_below=1,
            queries=(Query(expr="sum(vramgate_controller_leads)"),),
        ),
        Panel(
            title="Objects that wait",
            description="To be looked at by a duty, now or at a time that is planned.",
            unit=COUNT,
            width=18,
            queries=(Query(expr="sum by (pod) (vramgate_controller_queue)", legend="{{pod}}"),),
        ),
        Panel(
            title="What was done",
            description="Events told and objects written, by duty.",
            unit=COUNT,
            kind=Kind.STACKED,
            queries=counts(f'{_ACTS}{{outcome="done"}}', "duty", "{{duty}}"),
        ),
        Panel(
            title="What could not be done",
            description="`gone`: the object was. `again`: it changed meanwhile. `refused`: a role "
            "is missing, or another webhook or the kind's own rules forbid it.",
            unit=COUNT,
            kind=Kind.STACKED,
            queries=counts(f'{_ACTS}{{outcome!="done"}}', "duty, outcome", "{{duty}}: {{outcome}}"),
        ),
        Panel(
            title="Moved to a card that holds them",
            description="Pods and workloads, by why.",
            unit=COUNT,
            kind=Kind.STACKED,
            queries=counts("vramgate_rescheduled_total", "reason", "{{reason}}"),
        ),
        Panel(
            title="Found on, or for, a card that cannot hold them",
            description="`running` ones will run out of memory, `pending` ones would.",
            unit=COUNT,
            kind=Kind.STACKED,
            queries=counts("vramgate_wrong_card_total", "state", "{{state}}"),
        ),
        Panel(
            title="Deaths by lack of GPU memory, by whether they were predicted",
            description="`unknown`: there was no estimate of the pod.",
            unit=COUNT,
            kind=Kind.STACKED,
            width=24,
            queries=counts("vramgate_oom_total", "predicted", "predicted: {{predicted}}"),
        ),
    ),
)
