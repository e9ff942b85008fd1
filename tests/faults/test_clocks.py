"""Clocks that are wrong or set while we run: durations are measured by one that nobody sets."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from admission.controller.clock import ClusterClock

ROOT = Path(__file__).parents[2]
READS = {
    "admission/certificates/issuing.py": "from when a certificate is valid, where nobody says",
    "admission/certificates/keeper.py": "to tell that it is far from the API server's",
    "admission/controller/acting.py": "the default of a test",
    "admission/controller/clock.py": "before the API server has answered once",
    "admission/controller/learning.py": "the default of a test",
    "admission/controller/lease.py": "the default of a test, for people to read",
    "admission/controller/parts.py": "the default of a test",
    "admission/handling/policies.py": "the date at which an exemption ends",
    "admission/logs.py": "when a line was written",
    "admission/metrics.py": "how long a certificate is valid still",
    "admission/objects.py": "for an answer that has no date",
    "admission/server.py": "whether a certificate in files has expired",
}
"""Where our own clock is read, and what for: never for how long something takes."""
WALL = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow")}
WALL |= {("date", "today"), ("datetime", "today")}
START = datetime(2026, 6, 1, 8, tzinfo=UTC)
DAY = timedelta(days=1)


def reads_clock(source: str) -> bool:
    """Return whether *source* reads the wall clock."""
    if not any(word in source for word in ("time.time", ".now", ".utcnow", ".today")):
        return False
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in WALL
        for node in ast.walk(ast.parse(source))
    )


def test_wall_clock_is_read_where_it_says_and_nowhere_else() -> None:
    """A new use has to say what for; a duration has `time.monotonic` or the loop's time."""
    found = {
        str(path.relative_to(ROOT))
        for folder in ("admission", "estimator")
        for path in (ROOT / folder).rglob("*.py")
        if reads_clock(path.read_text())
    }

    assert found == set(READS)


class Clocks:
    """The API server's, ours, and the one that nobody sets."""

    def __init__(self) -> None:
        self.own = START
        self.passed = 100.0
        self.cluster = ClusterClock(monotonic=lambda: self.passed, own=lambda: self.own)


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_node_whose_clock_jumps_changes_no_wait_of_the_controller(jump: timedelta) -> None:
    """A pod that has waited for a minute has done so, whatever the node's clock says."""
    clocks = Clocks()
    clocks.cluster.saw(START)

    clocks.own += jump
    clocks.passed += 60.0

    assert clocks.cluster.now() == START + timedelta(seconds=60)


def test_clock_of_the_api_server_counts_from_its_first_answer_on() -> None:
    """It wrote what it is compared with."""
    clocks = Clocks()
    assert clocks.cluster.now() == START

    clocks.cluster.saw(START + DAY)

    assert clocks.cluster.now() == START + DAY
