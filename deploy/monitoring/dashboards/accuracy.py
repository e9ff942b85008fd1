"""The dashboard about how far estimates can be trusted."""

from __future__ import annotations

from deploy.monitoring.dashboards.parts import COUNT, DAY, SHARE, Board, Kind, Panel, Query, Row

RANGE = "$__range"


def of_a_day(part: str, of: str = "") -> str:
    """Return a part of the ratios of the pods of a day, as recorded each minute.

    An average of what an hour brought: every agent has a histogram, and a day of them all at each
    point of a line is more than Prometheus should read. *of* chooses buckets.
    """
    chosen = f'{{le=~"{of}"}}' if of else ""
    return f"avg_over_time(vramgate:estimate_error_ratio_{part}:increase1h{chosen}[1d])"


FOUNDATION = Row(
    title="What estimates rest on",
    panels=(
        Panel(
            title="How jobs were estimated",
            description="`trace`, `plan` and `compile` follow the framework; `formula` is a "
            "closed form "
            "with a wider interval.",
            unit=COUNT,
            kind=Kind.BARS,
            queries=(
                Query(
                    expr="sum by (framework, method) "
                    f'(increase(vramgate_estimates_total{{outcome="ok"}}[{RANGE}]))',
                    legend="{{framework}} {{method}}",
                ),
            ),
        ),
        Panel(
            title="Questions without an estimate",
            description="By what was in the way.",
            unit=COUNT,
            kind=Kind.BARS,
            queries=(
                Query(
                    expr="sum by (outcome) "
                    f'(increase(vramgate_estimates_total{{outcome!="ok"}}[{RANGE}]))',
                    legend="{{outcome}}",
                ),
            ),
        ),
        Panel(
            title="Where models were read from",
            description="`annotation` is the owner's word; the others were detected.",
            unit=COUNT,
            kind=Kind.STACKED,
            queries=(
                Query(
                    expr="sum by (source) (increase(vramgate_spec_source_total[$__rate_interval]))",
                    legend="{{source}}",
                ),
            ),
        ),
        Panel(
            title="Jobs close to their card",
            description="Share of `tight` among judged jobs: `enough` is over the budget, "
            "`least` not. "
            "A wide interval makes many of them.",
            unit=SHARE,
            span=DAY,
            queries=(
                Query(
                    expr='sum(increase(vramgate_reviews_total{verdict="tight"}[1h])) '
                    '/ sum(increase(vramgate_reviews_total{verdict=~"oom|tight|fits"}[1h]))',
                    legend="within an hour",
                ),
            ),
        ),
    ),
)

MEASURED = Row(
    title="Measured against estimated",
    needs="Vramgate's agent and controller, and the recording rules",
    panels=(
        Panel(
            title="Measured ÷ estimated",
            description="Of the pods of a day. 1 is exact; above it the estimate was too small.",
            unit=COUNT,
            queries=tuple(
                Query(
                    expr=f"histogram_quantile({of}, sum by (le) ({of_a_day('bucket')}))",
                    legend=f"{of:.0%}",
                )
                for of in (0.05, 0.5, 0.95)
            ),
        ),
        Panel(
            title="On average",
            description="Over a day, by how pods ended: one that died of memory had no more to "
            "take.",
            unit=COUNT,
            queries=(
                Query(
                    expr=f"sum by (ended) ({of_a_day('sum')}) "
                    f"/ sum by (ended) ({of_a_day('count')})",
                    legend="{{ended}}",
                ),
            ),
        ),
        Panel(
            title="How many are close",
            description="Share of the pods of a day that took at most what was estimated, and that "
            "were within a tenth of it.",
            unit=SHARE,
            queries=(
                Query(
                    expr=f"sum({of_a_day('bucket', of='1|1.0')}) / sum({of_a_day('count')})",
                    legend="at most",
                ),
                Query(
                    expr=f"(sum({of_a_day('bucket', of='1.1')}) "
                    f"- sum({of_a_day('bucket', of='0.9')})) / sum({of_a_day('count')})",
                    legend="within a tenth",
                ),
            ),
        ),
        Panel(
            title="Deaths by lack of GPU memory",
            description="Predicted: admitted in spite of the verdict. Not predicted: an error "
            "of ours.",
            unit=COUNT,
            kind=Kind.STACKED,
            queries=(
                Query(
                    expr="sum by (framework, predicted) (increase(vramgate_oom_total[1d]))",
                    legend="{{framework}} predicted: {{predicted}}",
                ),
            ),
        ),
    ),
)

BOARD = Board(
    name="accuracy",
    title="Accuracy",
    description="What estimates rest on, and how they compare with what was measured.",
    since="now-7d",
    rows=(FOUNDATION, MEASURED),
)
