"""Look at the cards of a stub, in a process of its own: `python -m tests.admission.agent.looking`.

a line with the time on standard input -> what one look finds, as JSON on standard output
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from admission.agent.nvml import Nvml
from admission.agent.problems import AgentProblem
from admission.agent.reading import Card, Reading, Use
from tests.nvml import stub

ROOT = Path(__file__).resolve().parents[3]


class Looker:
    """A child process with the stub, and a clock that stands still between looks."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._now = 1000.0

    def look(self, *, after: float = 1.0) -> Reading:
        """Return what is found *after* so many seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._now += after
        self._process.stdin.write(f"{self._now}\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return Reading(
            cards=tuple(Card(**each) for each in found["cards"]),
            uses=tuple(Use(**each) for each in found["uses"]),
            problems={AgentProblem(what): why for what, why in found["problems"].items()},
        )


@contextmanager
def looking(nvml: stub.Nvml) -> Iterator[Looker]:
    """Run the child for the length of a `with` block."""
    argv = [sys.executable, "-m", "tests.admission.agent.looking"]
    environment = {**os.environ, **nvml.environment}
    with subprocess.Popen(
        argv,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Looker(process)
        assert process.stdin is not None
        process.stdin.close()


def main() -> None:
    """Look whenever a line comes."""
    now = [0.0]
    cards = Nvml(clock=lambda: now[0])
    for line in sys.stdin:
        now[0] = float(line)
        print(json.dumps(asdict(cards.read())), flush=True)
    cards.close()


if __name__ == "__main__":
    main()
