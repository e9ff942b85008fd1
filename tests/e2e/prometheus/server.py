"""A real Prometheus on loopback that scrapes what a test names.

targets -> configuration -> a running Prometheus, asked by its HTTP API
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from deploy.monitoring.dashboards.writing import RULES
from tests.e2e.processes import answers, fetch, free_ports, retrying_ports, start_ready
from tests.e2e.prometheus.build import build

SCRAPE = "1s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A process that shows metrics on a port of loopback."""

    job: str
    port: int
    authority: Path | None = None
    """The CA of its certificate; None: it has none, and speaks plainly."""

    def document(self) -> Mapping[str, Any]:
        """Return the target as the configuration has it."""
        secure = {"scheme": "https", "tls_config": {"ca_file": str(self.authority)}}
        return {
            "job_name": self.job,
            "static_configs": [{"targets": [f"127.0.0.1:{self.port}"]}],
            **(secure if self.authority else {}),
        }


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus that runs."""

    url: str

    def query(self, expr: str) -> list[Any]:
        """Return what *expr* is now: series, each with its labels."""
        return list(self._asked("query", query=expr)["result"])

    def query_range(self, expr: str, *, since: float, until: float) -> list[Any]:
        """Return what *expr* was from *since* until *until*, second by second."""
        found = self._asked("query_range", query=expr, start=since, end=until, step=1)
        return list(found["result"])

    def label_values(self, label: str, match: str) -> list[str]:
        """Return the values of *label* among the series that *match* names."""
        return list(self._asked(f"label/{label}/values", **{"match[]": match}))

    def rules(self) -> list[Any]:
        """Return the rules, each with its health."""
        return [rule for group in self._asked("rules")["groups"] for rule in group["rules"]]

    def _asked(self, path: str, **query: object) -> Any:
        """Return the data that the API answers with; OSError with a query it refuses."""
        answer = json.loads(fetch(f"{self.url}/api/v1/{path}?{urlencode(query)}"))
        assert answer["status"] == "success", answer
        return answer["data"]


@contextmanager
def prometheus(folder: Path, *targets: Target) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes *targets*, and evaluates our rules, each second."""
    path = folder / "prometheus.yaml"
    hasty = folder / "rules.yaml"
    hasty.write_text(RULES.read_text().replace("interval: 1m", f"interval: {SCRAPE}"))
    document = {
        "global": {"scrape_interval": SCRAPE, "evaluation_interval": SCRAPE},
        "rule_files": [str(hasty)],
        "scrape_configs": [target.document() for target in targets],
    }
    path.write_text(yaml.safe_dump(document))
    server, url = retrying_ports(partial(_started, folder, path))
    try:
        yield Prometheus(url)
    finally:
        server.stop()


def _started(folder: Path, path: Path) -> Any:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    argv = [str(build() / "prometheus"), f"--config.file={path}"]
    argv += [f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
    argv += ["--log.level=warn"]
    ready = partial(answers, f"{url}/-/ready")
    return start_ready("prometheus", argv, directory=folder, is_ready=ready), url
