"""The kwok that plays the kubelet of nodes nobody runs.

go.mod, go.sum, Go -> a cache folder with kwok
"""

from __future__ import annotations

from pathlib import Path

from tests import gobuild

KWOK_VERSION = "v0.8.0"

KWOK = gobuild.Module(
    name="kwok",
    folder=Path(__file__).resolve().parent,
    packages={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    linker_flags=f"-s -w -X sigs.k8s.io/kwok/pkg/consts.Version={KWOK_VERSION}",
)


def build() -> Path:
    """Return the path of kwok, built first if the cache has none.

    Raises:
        BuildError: if Go is missing or the build fails.
    """
    return gobuild.build(KWOK) / "kwok"


if __name__ == "__main__":
    raise SystemExit(gobuild.main(KWOK))
