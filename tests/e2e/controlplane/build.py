"""The Kubernetes servers that the end-to-end tests start.

go.mod, go.sum, Go -> a cache folder with etcd and three Kubernetes servers
"""

from __future__ import annotations

from pathlib import Path

from tests import gobuild

KUBERNETES_VERSION = "v1.36.3"

CONTROL_PLANE = gobuild.Module(
    name="controlplane",
    folder=Path(__file__).resolve().parent,
    packages={
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    },
    # Without gitVersion the servers call themselves v0.0.0-master and version skew checks misfire.
    linker_flags=" ".join(
        (
            "-s -w",
            f"-X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}",
            "-X k8s.io/component-base/version.gitMajor=1",
            "-X k8s.io/component-base/version.gitMinor=36",
        )
    ),
)


def build() -> Path:
    """Return the folder with the four servers, built first if the cache has none.

    Raises:
        BuildError: if Go is missing or a build fails.
    """
    return gobuild.build(CONTROL_PLANE)


if __name__ == "__main__":
    raise SystemExit(gobuild.main(CONTROL_PLANE))
