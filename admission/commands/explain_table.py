"""The text of `vramgate explain`: a table of the units, then what there is to say of each job.

Judgements -> terminal
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from admission.audit import best_card_text, found_text
from admission.codes import Verdict
from admission.judge.conclusion import noticed
from admission.message.findings import is_fault
from admission.message.sentences import bounded
from admission.plaintext import plain
from admission.values import Judgement, UnitJudgement
from estimator.units import gib_up

STYLES = {
    Verdict.OOM: "bold red",
    Verdict.UNKNOWN: "magenta",
    Verdict.TIGHT: "yellow",
    Verdict.FITS: "green",
    Verdict.SKIPPED: "dim",
}
NOTHING = "–"
PLAIN_WIDTH = 120
"""Where the output is no terminal."""


def print_judgements(
    judgements: Sequence[Judgement],
    console: Console | None = None,
    *,
    steered: Sequence[str] = (),
    remarks: Sequence[Sequence[str]] = (),
) -> None:
    """Print the table and the messages.

    *steered* says of each where it would be steered, *remarks* where its mode comes from.
    """
    screen = console or Console(highlight=False)
    if not screen.is_terminal:
        screen = Console(file=screen.file, width=PLAIN_WIDTH, highlight=False)
    if not judgements:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("job", "found", "needs", "best card", "verdict"):
        table.add_column(heading, overflow="fold")
    for judgement in judgements:
        for row in _rows(judgement):
            table.add_row(*row)
    screen.print(table)
    for index, judgement in enumerate(judgements):
        where = steered[index] if index < len(steered) else ""
        screen.print()
        name = Text(job_name(judgement), style="bold")
        screen.print(Text.assemble(name, ": ", _told(judgement)), soft_wrap=True)
        if where:
            screen.print(Text(f"  {plain(where, limit=400)}"), soft_wrap=True)
        if judgement.exemption is not None:
            screen.print(Text(f"  {plain(judgement.exemption.sentence(), limit=400)}"))
        for remark in remarks[index] if index < len(remarks) else ():
            screen.print(Text(f"  {plain(remark, limit=400)}"), soft_wrap=True)
        for reason in _faults(judgement):
            screen.print(Text(f"  failed: {reason}"), soft_wrap=True)
        for warning in bounded(noticed(judgement.units)):
            screen.print(Text(f"  warning: {warning}"), soft_wrap=True)


def job_name(judgement: Judgement) -> str:
    """Return `namespace/name`, or the kind of what has no name yet."""
    ref = judgement.workload.ref
    name = ref.name or judgement.workload.metadata.get("generateName") or ref.kind
    return plain(f"{ref.namespace}/{name}" if ref.namespace else str(name))


def _rows(judgement: Judgement) -> Iterable[tuple[str | Text, ...]]:
    name = job_name(judgement)
    if not judgement.units:
        yield name, "", "", "", _verdict(judgement.verdict)
    for unit in judgement.units:
        several = len(judgement.units) > 1
        shown = f"{name} {plain(unit.unit.role or unit.unit.container)}" if several else name
        found = found_text(unit.reading.spec) if unit.reading.spec else NOTHING
        best = best_card_text(unit) or NOTHING
        yield shown, found, _needs(unit), best, _verdict(unit.verdict)


def _faults(judgement: Judgement) -> Iterable[str]:
    """Return what our own code said of its failures, for whoever reports them."""
    findings = [finding for unit in judgement.units for finding in unit.findings]
    return dict.fromkeys(
        plain(finding.reason, limit=400) for finding in findings if is_fault(finding)
    )


def _told(judgement: Judgement) -> str:
    return f"{judgement.message} [{judgement.action}]"


def _verdict(verdict: Verdict) -> Text:
    return Text(str(verdict), style=STYLES[verdict])


def _needs(judged: UnitJudgement) -> str:
    """Return the span of the smallest budget it completes in."""
    if judged.estimate is None:
        return NOTHING
    least, enough = judged.estimate.least.device_bytes, judged.estimate.enough.device_bytes
    low, high = gib_up(least), gib_up(enough)
    return low if low == high else f"{low.removesuffix(' GiB')}–{high}"
