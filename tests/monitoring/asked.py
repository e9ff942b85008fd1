"""What dashboards and rules ask Prometheus for.

the chart's JSON, rules.yaml -> panels with their queries; names of metrics
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from deploy.monitoring.dashboards.writing import CHART, RULES

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One query of one panel."""

    board: str
    row: str
    panel: str
    expr: str
    is_instant: bool
    is_hidden: bool
    """Its row is closed at first."""
    span: str = ""
    """A time of its panel's own, instead of the dashboard's."""

    @property
    def name(self) -> str:
        """Return where it is, for messages."""
        return f"{self.board} / {self.row} / {self.panel}"


def boards() -> Mapping[str, Json]:
    """Return the dashboards as the chart ships them, by name."""
    files = sorted((CHART / "dashboards").glob("*.json"))
    return {path.stem: json.loads(path.read_text()) for path in files}


def panels(board: Json) -> Iterator[tuple[Json, Json]]:
    """Return every panel of *board* with its row."""
    row: Json = {}
    for panel in board["panels"]:
        if panel["type"] == "row":
            row = panel
            yield from ((row, inner) for inner in row["panels"])
        else:
            yield row, panel


def asked() -> tuple[Asked, ...]:
    """Return every query of every dashboard."""
    return tuple(
        Asked(
            board=name,
            row=row["title"],
            panel=panel["title"],
            expr=target["expr"],
            is_instant=target.get("instant", False),
            is_hidden=row["collapsed"],
            span=panel.get("timeFrom", ""),
        )
        for name, board in boards().items()
        for row, panel in panels(board)
        for target in panel["targets"]
    )


def spanned(expr: str, *, span: str, rate: str, **chosen: str) -> str:
    """Return *expr* as Grafana sends it over *span*: what is not *chosen* is all there is."""
    variables = {**chosen, "__range": span, "__rate_interval": rate}
    if "workload_kind" in expr:
        variables.setdefault("kind", "Job")
    for name in sorted({*variables, "product", "kind", "mode"}, key=len, reverse=True):
        expr = expr.replace(f"${name}", variables.get(name, ".*"))
    assert "$" not in expr.replace('"$1"', ""), expr
    return expr


def rules() -> tuple[Json, ...]:
    """Return every rule."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return tuple(rule for group in groups for rule in group["rules"])


def metrics_in(expr: str) -> frozenset[str]:
    """Return the metrics of ours that *expr* asks for, by the names they are documented with."""
    found = re.findall(r"\bvramgate_\w+", expr)
    return frozenset(
        re.sub(r"_(bucket|sum|count)$", "", name) if _is_part(name) else name for name in found
    )


def _is_part(name: str) -> bool:
    return name != "vramgate_gpu_class_count"
