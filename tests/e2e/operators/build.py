"""The controllers of other projects that the end-to-end tests start.

go.mod, go.sum, Go -> cache folders with JobSet, Kueue, trainer, KubeRay and training-operator

Two modules: the last two need an earlier controller-runtime than the others.
"""

from __future__ import annotations

from pathlib import Path

from tests import gobuild

HERE = Path(__file__).resolve().parent

CURRENT = gobuild.Module(
    name="operators",
    folder=HERE / "current",
    packages={
        "jobset": "sigs.k8s.io/jobset",
        "kueue": "sigs.k8s.io/kueue/cmd/kueue",
        "trainer": "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
    },
)

EARLIER = gobuild.Module(
    name="operators-earlier",
    folder=HERE / "earlier",
    packages={
        "kuberay": "github.com/ray-project/kuberay/ray-operator",
        "training-operator": "./training-operator",
    },
    sources=("training-operator/main.go",),
)

MODULES = (CURRENT, EARLIER)


if __name__ == "__main__":
    raise SystemExit(max(map(gobuild.main, MODULES)))
