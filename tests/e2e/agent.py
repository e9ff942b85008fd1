"""Start `vramgate agent` as a child process, on a node whose cards and processes are made up.

    kubeconfig, a stub of NVML, a folder like /proc -> a running agent on loopback

The API server is real, and so are pods on it; the kubelet's part of their status is written here.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.processes import (
    Server,
    answers,
    fetch,
    free_ports,
    retrying_ports,
    start,
    wait_until_ready,
)
from tests.e2e.rest import ApiServer
from tests.nvml.stub import Nvml

SERIES = re.compile(r"^vramgate_(?P<name>\w+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)$", re.M)
LABEL = re.compile(r'(\w+)="([^"]*)"')
PEAKS = "vramgate.dev/peak-bytes"


@dataclass(slots=True)
class Agent:
    """An agent that can be stopped, killed and started again."""

    directory: Path
    kubeconfig: Path
    nvml: Nvml
    proc: Path
    node: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    server: Server | None = None

    def start(self) -> None:
        """Return when the agent looks and knows the node's pods.

        Raises:
            ServerError: if it does not come up; the message ends with its log.
        """
        self.begin()
        assert self.server is not None
        wait_until_ready(self.server, lambda: answers(f"{self.url}/readyz"))

    def begin(self) -> None:
        """Return when the agent answers, whatever it knows."""
        retrying_ports(self._start_once)

    def stop(self) -> None:
        """Stop the process, and wait for its end."""
        if self.server is not None:
            self.server.stop()
            self.server = None

    def kill(self) -> None:
        """End the process without a word."""
        if self.server is not None:
            self.server.kill()
            self.server = None

    @property
    def url(self) -> str:
        """Return where it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> list[dict[str, Any]]:
        """Return what it logged since its first start."""
        lines = (self.directory / "agent.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def logged(self, event: str, **values: object) -> list[dict[str, Any]]:
        """Return the lines of *event* with these *values*."""
        return [
            line for line in self.log if line["event"] == event and values.items() <= line.items()
        ]

    def series(self, name: str, **labels: str) -> dict[str, float]:
        """Return the values of a series with these *labels*, by all its labels."""
        text = fetch(f"{self.url}/metrics").decode()
        return {
            found["labels"] or "": float(found["value"])
            for found in SERIES.finditer(text)
            if found["name"] == name
            and labels.items() <= dict(LABEL.findall(found["labels"] or "")).items()
        }

    def value(self, name: str, **labels: str) -> float | None:
        """Return the one value of a series with these *labels*; None if there is none."""
        found = tuple(self.series(name, **labels).values())
        assert len(found) < 2, found
        return found[0] if found else None

    def peak(self, pod: str, container: str, gpu: str) -> float | None:
        """Return the mark of a container on a card; None if there is none."""
        return self.value("pod_gpu_memory_peak_bytes", pod=pod, container=container, gpu=gpu)

    def _start_once(self) -> None:
        port = self.port or free_ports(1)[0]
        path = self.directory / "agent.yaml"
        own = {
            "host": "127.0.0.1",
            "port": port,
            "nodeName": self.node,
            "procPath": str(self.proc),
        }
        path.write_text(yaml.safe_dump({"agent": {**own, **self.settings}}))
        argv = [sys.executable, "-m", "admission", "agent"]
        argv += ["--config", str(path), "--kubeconfig", str(self.kubeconfig)]
        environment = {**os.environ, **self.nvml.environment, **self.environment}
        server = start("agent", argv, directory=self.directory, environment=environment)
        try:
            wait_until_ready(server, lambda: answers(f"http://127.0.0.1:{port}/healthz"))
        except BaseException:
            server.stop()
            raise
        self.server, self.port = server, port


def run_process(proc: Path, pid: int, container: str) -> None:
    """Show a process of *container* (its id) in the folder *proc*, as systemd and containerd do."""
    folder = proc / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    slices = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2_3.slice"
    (folder / "cgroup").write_text(f"0::{slices}/cri-containerd-{container}.scope\n")


def pod(name: str, *containers: str, node: str, **annotations: str) -> dict[str, Any]:
    """Return a pod bound to *node*."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "containers": [{"name": each, "image": "example.com/a:1"} for each in containers],
        },
    }


def report(
    api: ApiServer, document: Mapping[str, Any], ids: Mapping[str, str], *, phase: str = "Running"
) -> None:
    """Write the status of a pod as its kubelet does: the phase, and the containers by name."""
    is_running = phase == "Running"
    statuses: list[dict[str, Any]] = [
        {
            "name": name,
            "containerID": f"containerd://{number}",
            "image": "example.com/a:1",
            "imageID": "",
            "ready": is_running,
            "restartCount": 0,
            "state": {"running": {}} if is_running else {"terminated": {"exitCode": 0}},
        }
        for name, number in ids.items()
    ]
    status = {"phase": phase, "containerStatuses": statuses}
    answer = api.patch(document, {"status": status}, subresource="status")
    assert answer.status == 200, answer.message
