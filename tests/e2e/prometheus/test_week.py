"""The made-up week, read by the real promtool and a real Prometheus."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.prometheus.week.archive import running
from tests.e2e.prometheus.week.backfill import START, Record, fill, fill_records

pytestmark = pytest.mark.e2e

MINUTES = 30


def test_prometheus_has_what_was_written(tmp_path: Path) -> None:
    """Samples a minute apart, and records beside them."""
    data = tmp_path / "data"
    data.mkdir()
    fill(data, minutes=MINUTES)
    samples = [(START + 60 * minute, "0.5") for minute in range(MINUTES)]
    fill_records(data, [Record(name="vramgate:example", labels={"a": "b"}, samples=samples)])

    with running(tmp_path) as server:
        at = START + 60 * (MINUTES - 1)
        counted = f"count_over_time(vramgate_policy_enabled[{MINUTES}m] @ {at}) == {MINUTES}"
        recorded = f'vramgate:example{{a="b"}} @ {at} == 0.5'

        assert server.instant(counted).num_series == 2  # replicas
        assert server.instant(recorded).num_series == 1
