"""A real Prometheus that has the week, with what our rules would have recorded of it.

a folder, a seed -> Archive, asked as Grafana asks

It scrapes nothing and evaluates nothing while it is asked.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from deploy.monitoring.dashboards.writing import RULES
from tests.e2e.processes import Server, answers, free_ports, retrying_ports, start_ready
from tests.e2e.prometheus.build import build
from tests.e2e.prometheus.week.backfill import END, START, Record, fill, fill_records

QUERY_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a query brought, and how long it took from question to answer."""

    num_series: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A Prometheus that runs."""

    url: str
    pid: int

    def instant(self, expr: str) -> Answer:
        """Return what *expr* was at the end of the week."""
        return self._asked("query", query=expr, time=END)

    def line(self, expr: str, *, seconds: int, step: int) -> Answer:
        """Return what *expr* was over the last *seconds* of the week, a point each *step*."""
        end = END - END % step
        return self._asked("query_range", query=expr, start=end - seconds, end=end, step=step)

    def recorded(self, rule: Mapping[str, str]) -> Iterator[Record]:
        """Yield what *rule* would have recorded, evaluated once a minute."""
        asked = {"query": rule["expr"], "start": START, "end": END, "step": 60}
        for series in self._result("query_range", asked):
            labels = {name: text for name, text in series["metric"].items() if name != "__name__"}
            samples = [(int(at), value) for at, value in series["values"]]
            yield Record(name=rule["record"], labels=labels, samples=samples)

    def _asked(self, path: str, **query: object) -> Answer:
        began = time.perf_counter()
        num_series = len(self._result(path, query))
        return Answer(num_series=num_series, seconds=time.perf_counter() - began)

    def _result(self, path: str, query: Mapping[str, object]) -> list[Any]:
        """Return the series of an answer; OSError with a query that is refused, or is late."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        url = f"{self.url}/api/v1/{path}?{urlencode(query)}"
        with opener.open(url, timeout=QUERY_SECONDS) as response:
            answer = json.loads(response.read())
        return list(answer["data"]["result"])


@contextmanager
def archive(folder: Path, *, seed: int) -> Iterator[Archive]:
    """Make the week in *folder* and run a Prometheus on it for the length of a `with` block."""
    data = folder / "data"
    data.mkdir()
    fill(data, seed=seed)
    with running(folder) as raw:
        records = [record for rule in _rules() for record in raw.recorded(rule)]
    fill_records(data, records)
    with running(folder) as whole:
        yield whole


def _rules() -> tuple[Mapping[str, str], ...]:
    """Return the recording rules that ask for what is scraped: no dashboard shows the others."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    records = [rule for group in groups for rule in group["rules"] if "record" in rule]
    return tuple(rule for rule in records if "vramgate:" not in rule["expr"])


@contextmanager
def running(folder: Path) -> Iterator[Archive]:
    """Run a Prometheus on the blocks in *folder*/data."""
    server, url = retrying_ports(partial(_started, folder))
    try:
        yield Archive(url=url, pid=server.process.pid)
    finally:
        server.stop()


def _started(folder: Path) -> tuple[Server, str]:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    configuration = folder / "archive.yaml"
    configuration.write_text("global: {scrape_interval: 1m}\n")
    argv = [
        str(build() / "prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=10y",
        f"--web.listen-address=127.0.0.1:{port}",
        # Blocks stay as they are: to join them would take what queries are measured by.
        "--storage.tsdb.min-block-duration=2h",
        "--storage.tsdb.max-block-duration=2h",
        "--no-storage.tsdb.allow-overlapping-compaction",
        "--log.level=warn",
    ]
    ready = partial(answers, f"{url}/-/ready")
    return start_ready("archive", argv, directory=folder, is_ready=ready), url
