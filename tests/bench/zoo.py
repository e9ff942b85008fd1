"""Trace every model of torchvision, timm and transformers: `make soak`.

    cases -> one training estimate each -> how many have an answer, and why the others have none

Minutes, not seconds. Exit 1 if an answer is neither an estimate nor `unsupported`: a crash, a fault
or a limit; and if a head of transformers has no estimate and `zoo_refusals.py` does not say why, or
says so of one that has. Words after the command choose cases by how their ids begin:
`transformers/causal-lm`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

import orjson
from rich.console import Console
from rich.table import Table

from admission.commands.estimate_cases import answer_cases
from estimator.catalog import resolve_device
from estimator.workers.pool import Workers
from tests.bench.figures import machine
from tests.bench.zoo_refusals import Reason, reason_of

CARD = "a100-sxm4-80gb"
GOOD, UNSUPPORTED = "estimate", "unsupported"


def cases(beginnings: Sequence[str]) -> list[bytes]:
    """Return the cases whose ids begin in one of these ways, made in a process of its own."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.bench.zoo_cases"],
        capture_output=True,
        check=True,
        timeout=600,
    )
    lines = made.stdout.splitlines()
    if not beginnings:
        return lines
    return [line for line in lines if orjson.loads(line)["id"].startswith(tuple(beginnings))]


async def soak(beginnings: Sequence[str]) -> int:
    """Estimate all; print the failures and the counts by library and task."""
    console = Console(highlight=False)
    console.print(machine(), soft_wrap=True)
    lines = cases(beginnings)
    workers = Workers()
    counts: Counter[tuple[str, str]] = Counter()
    reasons: Counter[Reason] = Counter()
    surprises: list[str] = []
    try:
        async for answer in answer_cases(
            lines, workers, device=resolve_device(CARD), window=2 * workers.max_concurrent
        ):
            group = "/".join(answer["id"].split("/")[:2])
            kind = answer["error"]["kind"] if "error" in answer else GOOD
            counts[group, kind] += 1
            reason = reason_of(answer["id"])
            reasons.update([reason] if reason and kind != GOOD else [])
            if group.startswith("transformers") and (kind == GOOD) is (reason is not None):
                surprises.append(answer["id"])
            if kind != GOOD:
                text = f"{answer['id']}: {kind}: {answer['error']['message'][:300]}"
                console.print(text, soft_wrap=True, markup=False)
            if counts.total() % 100 == 0:
                console.print(f"{counts.total()} of {len(lines)}")
    finally:
        await workers.close()
    console.print(_table(counts))
    for reason, number in reasons.items():
        console.print(f"{number} without an estimate: {reason}")
    for name in surprises:
        console.print(f"not as zoo_refusals.py says: {name}", soft_wrap=True)
    failed = any(kind not in (GOOD, UNSUPPORTED) for _, kind in counts)
    return 1 if failed or surprises else 0


def _table(counts: Counter[tuple[str, str]]) -> Table:
    """Return a row a library and task: all, estimated, unsupported, other."""
    table = Table("library and task", "models", "estimated", "unsupported", "failed")
    groups = dict.fromkeys(group for group, _ in counts)
    for group in groups:
        total = sum(number for (name, _), number in counts.items() if name == group)
        good, named = counts[group, GOOD], counts[group, UNSUPPORTED]
        table.add_row(group, *(str(n) for n in (total, good, named, total - good - named)))
    return table


if __name__ == "__main__":
    sys.exit(asyncio.run(soak(sys.argv[1:])))
