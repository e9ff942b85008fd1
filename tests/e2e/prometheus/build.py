"""The Prometheus and promtool that try our rules and dashboards.

    go.mod, go.sum, Go -> a cache folder with prometheus and promtool

Without their pages and without the service discoveries of clouds: they are a server of queries.
"""

from __future__ import annotations

from pathlib import Path

from tests import gobuild

PROMETHEUS = gobuild.Module(
    name="prometheus",
    folder=Path(__file__).resolve().parent,
    packages={
        "promtool": "github.com/prometheus/prometheus/cmd/promtool",
        "prometheus": "github.com/prometheus/prometheus/cmd/prometheus",
    },
    tags=("remove_all_sd",),
)


def build() -> Path:
    """Return the folder with both, built first if the cache has none.

    Raises:
        BuildError: if Go is missing or the build fails.
    """
    return gobuild.build(PROMETHEUS)


if __name__ == "__main__":
    raise SystemExit(gobuild.main(PROMETHEUS))
