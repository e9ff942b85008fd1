"""The week as blocks of a Prometheus, written by the real promtool.

    a seed, a folder -> OpenMetrics -> blocks; Records -> blocks beside them

By windows of six hours, each a file and a block: promtool reads a file once for its bounds and once
for each block in it. Windows, like blocks, begin at multiples of their length.
Source: prometheus/prometheus cmd/promtool/backfill.go (`createBlocks`).
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.prometheus.build import build
from tests.e2e.prometheus.week.cluster import MINUTES, SEED, jobs
from tests.e2e.prometheus.week.exporters import api_server, dcgm, kube_state
from tests.e2e.prometheus.week.others import agents, controllers
from tests.e2e.prometheus.week.series import Series, labelled, write
from tests.e2e.prometheus.week.serve import serve

START = 1_767_571_200
"""Monday, 5 January 2026, 00:00 UTC: minute 0 of the week."""
END = START + 60 * (MINUTES - 1)
"""Of the last sample."""
WINDOW = 6 * 60 * 60
RECORDS_WINDOW = 54 * 60 * 60
"""Of blocks of records, which are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a rule would have recorded: one series of it."""

    name: str
    labels: Mapping[str, str]
    samples: Sequence[tuple[int, str]]
    """Seconds, and the value as Prometheus says it."""


def series(seed: int = SEED) -> Iterator[Series]:
    """Yield every series of the week."""
    drawn = jobs(seed)
    yield from serve(drawn, seed)
    yield from controllers(drawn, seed)
    yield from agents(drawn)
    yield from dcgm(drawn)
    yield from kube_state(drawn)
    yield from api_server(drawn)


def fill(folder: Path, *, seed: int = SEED, minutes: int = MINUTES) -> int:
    """Write the blocks of the first *minutes* into *folder*; return how many series there are."""
    known = tuple(series(seed))
    for window in range(START // WINDOW, (START + 60 * (minutes - 1)) // WINDOW + 1):
        since = max(0, (window * WINDOW - START) // 60)
        until = min(minutes, ((window + 1) * WINDOW - START) // 60)
        path = folder.with_name("window.om")
        with path.open("w") as file:
            write(known, file, start=START, since=since, until=until)
        _promtool(path, folder, window=WINDOW)
        path.unlink()
    return len(known)


def fill_records(folder: Path, records: Iterable[Record]) -> None:
    """Write the blocks of *records* into *folder*.

    Not by promtool's own way from rules to blocks: it makes a block a rule and a window, hundreds,
    where a Prometheus that evaluates has a few.
    """
    with tempfile.TemporaryDirectory(dir=folder.parent) as name, ExitStack() as stack:
        files = {
            window: stack.enter_context((Path(name) / f"{window}.om").open("w"))
            for window in range(START // RECORDS_WINDOW, END // RECORDS_WINDOW + 1)
        }
        for record in records:
            text = labelled(record.name, record.labels)
            for at, value in record.samples:
                files[at // RECORDS_WINDOW].write(f"{text} {value} {at}\n")
        for file in files.values():
            file.write("# EOF\n")
            file.flush()
            _promtool(Path(file.name), folder, window=RECORDS_WINDOW)


def _promtool(path: Path, folder: Path, *, window: int) -> None:
    argv = [str(build() / "promtool"), "tsdb", "create-blocks-from", "openmetrics"]
    argv += [f"--max-block-duration={window}s", str(path), str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"promtool: {done.stdout[-2000:]}{done.stderr[-2000:]}")
