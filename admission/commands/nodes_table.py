"""The text of `vramgate nodes`: a table of classes, and of each class what keeps a job away.

NodeClasses, WorkloadPlaces -> terminal
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from admission.codes import Verdict
from admission.commands.explain_table import NOTHING, STYLES
from admission.commands.nodes_why import Opening, UnitPlaces, WorkloadPlaces
from admission.decision import budget_of
from admission.message.findings import told_reason
from admission.plaintext import plain
from admission.values import NodeClass
from estimator.units import gib_down, gib_up

PLAIN_WIDTH = 140
"""Where the output is no terminal."""


def print_classes(classes: Sequence[NodeClass], console: Console | None = None) -> None:
    """Print one row a class, then why cards are unknown."""
    screen = _screen(console)
    if not classes:
        screen.print("no node has a GPU that is known here")
        return
    table = _table("class", "nodes", "GPUs a node", "resource", "sharing", "budget a GPU")
    for each in classes:
        table.add_row(
            plain(each.name),
            str(each.count),
            str(each.gpus_per_node),
            plain(each.gpu_resource),
            plain(each.sharing),
            _budget(each),
        )
    screen.print(table)
    reasons = [each for each in classes if budget_of(each) is None]
    if reasons:
        screen.print()
    for each in reasons:
        reason = each.unknown_reason or "its memory is not known"
        screen.print(Text(f"{plain(each.name)}: {plain(reason, limit=400)}"), soft_wrap=True)


def print_places(found: Sequence[WorkloadPlaces], console: Console | None = None) -> None:
    """Print of each unit a row a class, and below why nodes are closed to it."""
    screen = _screen(console)
    for index, workload in enumerate(found):
        for unit in workload.units:
            _print_unit(screen, workload, unit, is_first=index == 0 and unit is workload.units[0])
        if not workload.units:
            screen.print(Text(f"{_name(workload)}: asks for no GPU that was seen", style="bold"))


def _print_unit(
    screen: Console, workload: WorkloadPlaces, found: UnitPlaces, *, is_first: bool
) -> None:
    if not is_first:
        screen.print()
    unit = found.unit
    asks = f"{unit.pod_gpus} × {unit.gpu_resource}"
    if unit.share is not None and unit.share.text:
        asks = f"{asks}, {unit.share.text}"
    role = plain(unit.role or unit.container)
    screen.print(
        Text.assemble((f"{_name(workload)} {role}", "bold"), f": a pod asks for {plain(asks)}"),
        soft_wrap=True,
    )
    table = _table("class", "open", "budget a GPU", "needs", "verdict")
    for opening in found.openings:
        table.add_row(*_row(opening))
    screen.print(table)
    for opening in found.openings:
        for line in _closed(opening):
            screen.print(Text(f"  {line}"), soft_wrap=True)
    for finding in found.findings:
        screen.print(
            Text(f"  no estimate: {plain(told_reason(finding), limit=400)}"), soft_wrap=True
        )


def _row(opening: Opening) -> tuple[str | Text, ...]:
    node_class, judged = opening.node_class, opening.judged
    needs, verdict = NOTHING, Text(NOTHING)
    if judged is not None:
        verdict = Text(str(judged.verdict), style=STYLES[judged.verdict])
        if opening.num_open == 0 and judged.verdict is not Verdict.UNKNOWN:
            verdict = Text(f"({judged.verdict}, if it were open)", style="dim")
        if judged.estimate is not None:
            low = gib_up(judged.estimate.least.device_bytes)
            high = gib_up(judged.estimate.enough.device_bytes)
            needs = low if low == high else f"{low.removesuffix(' GiB')}–{high}"
    of_nodes = f"{opening.num_open} of {node_class.count} nodes"
    return plain(node_class.name), of_nodes, _budget(node_class), needs, verdict


def _closed(opening: Opening) -> Iterable[str]:
    name = plain(opening.node_class.name)
    if opening.node_class.declared is not None:
        declared = opening.node_class.declared
        whole = gib_down(declared.whole_bytes)
        yield f"{name}: of {whole} the pod declares {plain(declared.share.text)}"
    if budget_of(opening.node_class) is None:
        reason = opening.node_class.unknown_reason or "its memory is not known"
        yield f"{name}: {plain(reason, limit=400)}"
    for closed in opening.closed:
        first = plain(closed.nodes[0]) if closed.nodes else ""
        more = f" and {len(closed.nodes) - 1} more" if len(closed.nodes) > 1 else ""
        where = f" ({first}{more})" if first else ""
        for why in closed.why:
            yield f"{name}{where}: {plain(why, limit=400)}"


def _budget(node_class: NodeClass) -> str:
    budget = budget_of(node_class)
    return "unknown" if budget is None else gib_down(budget)


def _name(found: WorkloadPlaces) -> str:
    ref = found.workload.ref
    name = ref.name or found.workload.metadata.get("generateName") or ref.kind
    return plain(f"{ref.namespace}/{name}" if ref.namespace else str(name))


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _screen(console: Console | None) -> Console:
    screen = console or Console(highlight=False)
    if screen.is_terminal:
        return screen
    return Console(file=screen.file, width=PLAIN_WIDTH, highlight=False)
