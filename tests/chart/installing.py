"""Run what the chart installs: its container's command here, with its account's rights.

rendered objects, control plane -> a running process on loopback
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from tests.chart.rendering import Document, Values, of_kind
from tests.e2e.cluster import ControlPlane

SETTINGS = "/etc/vramgate/settings.yaml"


def values(port: int, metrics_port: int) -> Values:
    """Return values for a process on loopback that starts no framework."""
    return {
        "port": port,
        "metricsPort": metrics_port,
        "service": {"port": port},
        "config": {"server": {"host": "127.0.0.1"}, "workers": {"preload": []}},
    }


def argv_of(found: tuple[Document, ...], *, directory: Path) -> list[str]:
    """Return the container's command, with the ConfigMap's file where it is here."""
    path = directory / "settings.yaml"
    path.write_text(of_kind(found, "ConfigMap")["data"]["settings.yaml"])
    (container,) = of_kind(found, "Deployment")["spec"]["template"]["spec"]["containers"]
    args = [str(path) if each == SETTINGS else each for each in container["args"]]
    return [sys.executable, "-m", "admission", *args]


def kubeconfig_of(plane: ControlPlane, token: str, *, directory: Path) -> Path:
    """Return a kubeconfig with the rights of *token* and no others."""
    document: Any = yaml.safe_load(plane.credentials.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path
