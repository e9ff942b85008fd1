"""The dashboard about what was answered, why, and how fast."""

from __future__ import annotations

from deploy.monitoring.dashboards.after import AFTER
from deploy.monitoring.dashboards.health import CALLS, HEALTH, RANGE, RATE
from deploy.monitoring.dashboards.parts import (
    COUNT,
    DAY,
    SECONDS,
    SHARE,
    Board,
    Kind,
    Panel,
    Query,
    Row,
    Variable,
)

CHOSEN = 'kind=~"$kind",mode=~"$mode"'


def quantile(of: float, metric: str, by: str = "") -> str:
    """Return a quantile of a histogram, by *by*."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({of}, sum by ({labels}) (rate({metric}_bucket[{RATE}])))"


def number(title: str, description: str, expr: str, unit: str = COUNT, *, span: str = "") -> Panel:
    """Return a panel with one figure over the chosen time, or over *span*."""
    return Panel(
        title=title,
        description=description,
        unit=unit,
        kind=Kind.NUMBER,
        width=6,
        height=4,
        span=span,
        queries=(Query(expr=expr),),
    )


VERDICTS = Row(
    title="Verdicts",
    panels=(
        number(
            "Denied",
            "Reviews that ended in a denial: each is a job that did not run out of memory hours "
            "later.",
            f'sum(increase(vramgate_reviews_total{{action="deny",{CHOSEN}}}[{RANGE}]))',
        ),
        number(
            "Would have been denied",
            "Objects that mode `warn` or an exemption alone let pass. `vramgate report` names "
            "them.",
            f'sum(increase(vramgate_would_deny_total{{kind=~"$kind"}}[{RANGE}]))',
        ),
        number(
            "Steered",
            "Objects whose pods were led to cards that hold them.",
            f'sum(increase(vramgate_steered_total{{kind=~"$kind"}}[{RANGE}]))',
        ),
        number(
            "Unknown",
            "Of the reviews of GPU jobs. Below is why.",
            f'sum(increase(vramgate_reviews_total{{verdict="unknown",{CHOSEN}}}[{RANGE}])) '
            f'/ sum(increase(vramgate_reviews_total{{verdict!="skipped",{CHOSEN}}}[{RANGE}]))',
            SHARE,
            span=DAY,
        ),
        Panel(
            title="Verdicts",
            description="Reviews by verdict. An object is reviewed by /mutate, by /validate, "
            "and at "
            "each change that matters.",
            unit=COUNT,
            kind=Kind.STACKED,
            span=DAY,
            queries=(
                Query(
                    expr=f"sum by (verdict) (increase(vramgate_reviews_total{{{CHOSEN}}}[{RATE}]))",
                    legend="{{verdict}}",
                ),
            ),
        ),
        Panel(
            title="Answers",
            description="What the API server was told, and in which mode.",
            unit=COUNT,
            kind=Kind.STACKED,
            span=DAY,
            queries=(
                Query(
                    expr="sum by (action, mode) "
                    f"(increase(vramgate_reviews_total{{{CHOSEN}}}[{RATE}]))",
                    legend="{{action}} ({{mode}})",
                ),
            ),
        ),
        Panel(
            title="Why jobs stayed unknown",
            description="The ten most frequent codes, each in docs/limits.md or in the answer's "
            "hint.",
            unit=COUNT,
            kind=Kind.BARS,
            queries=(
                Query(
                    expr=f"topk(10, sum by (code) (increase(vramgate_unknown_total[{RANGE}])))",
                    legend="{{code}}",
                ),
            ),
        ),
        Panel(
            title="Where models were read from",
            description="Of the GPU containers that were understood.",
            unit=COUNT,
            kind=Kind.BARS,
            queries=(
                Query(
                    expr=f"sum by (source) (increase(vramgate_spec_source_total[{RANGE}]))",
                    legend="{{source}}",
                ),
            ),
        ),
        Panel(
            title="Reviews by kind",
            description="The ten kinds that come most.",
            unit=COUNT,
            width=24,
            span=DAY,
            queries=(
                Query(
                    expr="topk(10, sum by (kind) "
                    f"(increase(vramgate_reviews_total{{{CHOSEN}}}[{RATE}])))",
                    legend="{{kind}}",
                ),
            ),
        ),
    ),
)

SPEED = Row(
    title="Speed",
    panels=(
        Panel(
            title="Time of a review",
            description="From its last byte to the answer. The API server waits five seconds.",
            unit=SECONDS,
            warn_above=4,
            queries=tuple(
                Query(expr=quantile(of, "vramgate_review_seconds"), legend=f"{of:.0%}")
                for of in (0.5, 0.95, 0.99)
            ),
        ),
        Panel(
            title="Time of a review by where the estimate came from",
            description="95 of a hundred are faster. `late`: answered `unknown` at the deadline.",
            unit=SECONDS,
            queries=(
                Query(expr=quantile(0.95, "vramgate_review_seconds", "cache"), legend="{{cache}}"),
            ),
        ),
        Panel(
            title="Time of an estimate",
            description="With the wait for a free worker. Nine of ten are faster.",
            unit=SECONDS,
            span=DAY,
            queries=(
                Query(
                    expr=quantile(0.9, "vramgate_estimate_seconds", "framework"),
                    legend="{{framework}}",
                ),
            ),
        ),
        Panel(
            title="Estimates by outcome",
            description="`unsupported` is a job that cannot be modelled yet; `timeout` and "
            "`memory` hit "
            "the limits of a worker.",
            unit=COUNT,
            kind=Kind.STACKED,
            queries=(
                Query(
                    expr=f"sum by (outcome) (increase(vramgate_estimates_total[{RATE}]))",
                    legend="{{outcome}}",
                ),
            ),
        ),
        Panel(
            title="Cache",
            description="Questions by where the answer came from; `joined`: it was on its way.",
            unit=COUNT,
            kind=Kind.STACKED,
            queries=(
                Query(
                    expr=f"sum by (result) (increase(vramgate_cache_requests_total[{RATE}]))",
                    legend="{{result}}",
                ),
            ),
        ),
        Panel(
            title="Workers",
            description="Templates by state, estimates that run (`busy`) and that wait "
            "(`waiting`).",
            unit=COUNT,
            queries=(
                Query(
                    expr="sum by (state) (vramgate_estimator_workers)",
                    legend="{{state}}",
                ),
            ),
        ),
    ),
)

WEEKS = Row(
    title="A month",
    needs="the recording rules",
    panels=(
        Panel(
            title="Verdicts a second",
            description="Reviews by verdict, as recorded each minute: a month of them is asked "
            "of a few series instead of all.",
            unit="reqps",
            kind=Kind.STACKED,
            span="30d",
            queries=(
                Query(
                    expr='sum by (verdict) (vramgate:reviews_of_kind:rate5m{kind=~"$kind"})',
                    legend="{{verdict}}",
                ),
            ),
        ),
        Panel(
            title="Answers a second",
            description="What the API server was told, and in which mode, as recorded.",
            unit="reqps",
            kind=Kind.STACKED,
            span="30d",
            queries=(
                Query(
                    expr='sum by (action, mode) (vramgate:reviews:rate5m{mode=~"$mode"})',
                    legend="{{action}} ({{mode}})",
                ),
            ),
        ),
        Panel(
            title="Time of reviews and estimates",
            description="As recorded: of a hundred reviews 99 are faster, of ten estimates nine.",
            unit=SECONDS,
            span="30d",
            queries=(
                Query(expr="vramgate:review_seconds:p99_5m", legend="review"),
                Query(expr="vramgate:estimate_seconds:p90_15m", legend="estimate: {{framework}}"),
            ),
        ),
        Panel(
            title="Unknown and late",
            description="Shares of the reviews of an hour that stayed unknown, and of a quarter of "
            "an hour that were answered before their estimate was there.",
            unit=SHARE,
            span="30d",
            queries=(
                Query(expr="vramgate:reviews_unknown:ratio1h", legend="unknown"),
                Query(expr="vramgate:reviews_late:ratio15m", legend="late"),
            ),
        ),
    ),
)

BOARD = Board(
    name="admission",
    title="Admission",
    description="What the webhook answered, why, and how fast.",
    variables=(
        Variable(name="kind", label="Kind", query="label_values(vramgate_reviews_total, kind)"),
        Variable(name="mode", label="Mode", query="label_values(vramgate_reviews_total, mode)"),
    ),
    rows=(VERDICTS, SPEED, HEALTH, WEEKS, AFTER, CALLS),
)
