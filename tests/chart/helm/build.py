"""The helm that renders the chart.

go.mod, go.sum, Go -> a cache folder with helm
"""

from __future__ import annotations

from pathlib import Path

from tests import gobuild

HELM_VERSION = "v3.22.0"

HELM = gobuild.Module(
    name="helm",
    folder=Path(__file__).resolve().parent,
    packages={"helm": "helm.sh/helm/v3/cmd/helm"},
    linker_flags=f"-s -w -X helm.sh/helm/v3/internal/version.version={HELM_VERSION}",
)


def build() -> Path:
    """Return the path of helm, built first if the cache has none.

    Raises:
        BuildError: if Go is missing or the build fails.
    """
    return gobuild.build(HELM) / "helm"


if __name__ == "__main__":
    raise SystemExit(gobuild.main(HELM))
