"""What dashboards are described with, and how Grafana is told.

    Board(rows(panels(queries))) -> the dashboard as Grafana's SDK has it -> JSON

A row that needs more than Vramgate's webhook is collapsed: Grafana asks its queries once somebody
opens it, so a cluster that has only Vramgate shows no empty panel.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

with warnings.catch_warnings():
    # It would have us write the next schema, which only the newest Grafana reads from a file.
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.builders import (
        bargauge,
        common,
        dashboard,
        prometheus,
        stat,
        table,
        timeseries,
    )
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    DataSourceRef,
    GraphDrawStyle,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
    VariableOption,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

TAG = "vramgate"
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
BYTES = "bytes"
"""Binary: 1,024 bytes are a KiB."""
SECONDS = "s"
COUNT = "short"
SHARE = "percentunit"
ALL = "$__all"
DAY = "1d"
"""The span of a panel that asks for hundreds of series a replica (`vramgate_reviews_total`): a
week of them takes Prometheus half a second. Grafana keeps to times that are given exactly, so what
was a week ago is still to be seen; longer times are shown by panels of recorded series.
Source: grafana/grafana public/app/features/dashboard/utils/panel.ts (`applyPanelTimeOverrides`)."""
POINTS = 300
"""Of a line, over whatever time is chosen: a point each five minutes of a day. More cost Prometheus
more than they show: `sum by (verdict)` goes through some 500 series a replica."""


class Kind(StrEnum):
    """How a panel shows what it asked."""

    LINES = "lines"
    STACKED = "stacked"
    NUMBER = "number"
    BARS = "bars"
    """One bar a series, as it is now."""
    TABLE = "table"
    """One row a set of labels, one column a query, as it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question to Prometheus."""

    expr: str
    legend: str = ""
    """The column's name in a table; `{{label}}` elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    kind: Kind = Kind.LINES
    width: int = 12
    """Of 24."""
    height: int = 8
    span: str = ""
    """A time of its own, `30d`, instead of the dashboard's."""
    warn_above: float | None = None
    warn_below: float | None = None
    units: dict[str, str] = field(default_factory=dict)
    """Of a table's columns, where they differ from `unit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels that belong together."""

    title: str
    panels: tuple[Panel, ...]
    needs: str = ""
    """What has to be in the cluster beside the webhook; such a row is collapsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """Something that people choose."""

    name: str
    label: str
    query: str
    multi: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One dashboard."""

    name: str
    """Of its file; `vramgate-NAME` is its address in Grafana."""
    title: str
    description: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()
    since: str = "now-24h"

    def text(self) -> str:
        """Return the file that Grafana loads."""
        document = json.loads(json.dumps(_dashboard(self).build(), cls=JSONEncoder))
        for link in document["links"]:
            del link["placement"]  # the SDK's default hides it in a menu of the newest Grafana
        return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _dashboard(board: Board) -> dashboard.Dashboard:
    made = (
        dashboard.Dashboard(f"Vramgate / {board.title}")
        .uid(f"vramgate-{board.name}")
        .description(board.description)
        .tags([TAG])
        .time(board.since, "now")
        .refresh("1m")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(_datasource())
        .link(_others())
    )
    for variable in board.variables:
        made.with_variable(_variable(variable))
    numbers = iter(range(1, 1000))
    for row in board.rows:
        built = dashboard.Row(row.title if not row.needs else f"{row.title} (needs {row.needs})")
        built.id(next(numbers)).collapsed(bool(row.needs))
        panels = [_panel(panel).id(next(numbers)) for panel in row.panels]
        if row.needs:
            for panel in panels:
                built.with_panel(panel)
        made.with_row(built)
        if not row.needs:
            for panel in panels:
                made.with_panel(panel)
    return made


def _datasource() -> dashboard.DatasourceVariable:
    return dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def _variable(variable: Variable) -> dashboard.QueryVariable:
    made = (
        dashboard.QueryVariable(variable.name)
        .label(variable.label)
        .query({"query": variable.query, "refId": variable.name})
        .datasource(SOURCE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )
    if variable.multi:
        made.multi(True).include_all(True).all_value(".*")
        made.current(VariableOption(selected=True, text="All", value=ALL))
    return made


def _others() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Vramgate")
        .type(DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(True)
        .keep_time(True)
        .include_vars(False)
    )


def _panel(panel: Panel) -> Any:
    """Return the builder of *panel*: each kind has one of its own, with the same names."""
    made = _KINDS[panel.kind](panel)
    made.title(panel.title).description(panel.description).unit(panel.unit).datasource(SOURCE)
    made.span(panel.width).height(panel.height)
    if panel.kind in (Kind.LINES, Kind.STACKED):
        made.max_data_points(POINTS)
    if panel.span:
        made.time_from(panel.span)
    steps = _steps(panel)
    if steps:
        thresholds = dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
        made.thresholds(thresholds)
    for number, query in enumerate(panel.queries):
        made.with_target(_target(panel, query, chr(ord("A") + number)))
    return made


def _steps(panel: Panel) -> list[Threshold]:
    if panel.warn_above is not None:
        return [Threshold(color="green"), Threshold(value=panel.warn_above, color="orange")]
    if panel.warn_below is not None:
        return [Threshold(color="orange"), Threshold(value=panel.warn_below, color="green")]
    return []


def _target(panel: Panel, query: Query, letter: str) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.expr).ref_id(letter).legend_format(query.legend)
    if panel.kind is Kind.TABLE:
        return made.instant().format(PromQueryFormat.TABLE)
    return made.instant() if panel.kind in (Kind.BARS, Kind.NUMBER) else made.range()


def _lines(_: Panel) -> timeseries.Panel:
    legend = common.VizLegendOptions().show_legend(True).placement(LegendPlacement.BOTTOM)
    return (
        timeseries.Panel()
        .draw_style(GraphDrawStyle.LINE)
        .fill_opacity(10)
        .min(0)
        .legend(legend.display_mode(LegendDisplayMode.LIST))
    )


def _stacked(panel: Panel) -> timeseries.Panel:
    stacking = common.StackingConfig().mode(StackingMode.NORMAL).group("A")
    return _lines(panel).fill_opacity(50).stacking(stacking)


def _number(_: Panel) -> stat.Panel:
    return stat.Panel().reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))


def _bars(_: Panel) -> bargauge.Panel:
    options = common.ReduceDataOptions().calcs(["lastNotNull"])
    return bargauge.Panel().orientation(VizOrientation.HORIZONTAL).reduce_options(options).min(0)


def _table(panel: Panel) -> table.Panel:
    letters = {f"Value #{chr(ord('A') + at)}": each.legend for at, each in enumerate(panel.queries)}
    organized = {"excludeByName": {"Time": True}, "renameByName": letters}
    made = table.Panel()
    made.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    made.with_transformation(DataTransformerConfig(id_val="organize", options=organized))
    for column, unit in panel.units.items():
        made.override_by_name(column, [_unit(unit)])
    return made


def _unit(unit: str) -> DynamicConfigValue:
    return DynamicConfigValue(id_val="unit", value=unit)


_KINDS: dict[Kind, Callable[[Panel], Any]] = {
    Kind.LINES: _lines,
    Kind.STACKED: _stacked,
    Kind.NUMBER: _number,
    Kind.BARS: _bars,
    Kind.TABLE: _table,
}
