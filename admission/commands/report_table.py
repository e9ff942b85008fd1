"""The text of `vramgate report`: who was asked, and the denials by namespace.

Merged -> terminal
"""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from admission.commands.report_merge import Merged
from admission.plaintext import plain

PLAIN_WIDTH = 160
"""Where the output is no terminal."""


def print_report(found: Merged, console: Console | None = None) -> None:
    """Print the report, the newest denial of each namespace first."""
    screen = console or Console(highlight=False)
    if not screen.is_terminal:
        screen = Console(file=screen.file, width=PLAIN_WIDTH, highlight=False)
    document = found.document()
    answered = sum(each.report is not None for each in found.replicas)
    head = (
        f"jobs that would have been denied since {document['wholeSince']}: {len(found.denials)}, "
        f"by {answered} of {len(found.replicas)} replicas"
    )
    if document["since"] != document["wholeSince"]:
        head += f"; the first of them is there since {document['since']}"
    screen.print(Text(head), soft_wrap=True)
    for replica in found.replicas:
        if replica.report is None:
            text = f"not asked: {replica.name} {replica.problem}"
            screen.print(Text(f"  {plain(text, limit=400)}"), soft_wrap=True)
    if document["forgotten"]:
        screen.print(Text(f"  {document['forgotten']} older ones were forgotten"))
    if not found.denials:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("namespace", "job", "because", "times", "last", "why"):
        table.add_column(heading, overflow="fold")
    counts = Counter(each.namespace for each in found.denials)
    for each in sorted(found.denials, key=lambda one: (-counts[one.namespace], one.namespace)):
        because = f"{each.because} until {each.exempt_until}" if each.exempt_until else each.because
        row = each.document()
        table.add_row(
            *(
                plain(str(text), limit=400)
                for text in (
                    each.namespace,
                    f"{each.kind}/{each.name}",
                    because,
                    each.times,
                    row["last"],
                    each.message,
                )
            )
        )
    screen.print()
    screen.print(table)
