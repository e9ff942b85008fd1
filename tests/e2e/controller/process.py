"""Start `vramgate controller` as a child process and wait until it leads.

    settings, kubeconfig -> a running controller on loopback

The only file here that knows the controller's command line and settings.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.processes import Server, answers, fetch, free_ports, retrying_ports, start_ready

NAMESPACE = "vramgate-system"
"""Where the controller keeps its Lease, told nothing else."""
LEASE_SECONDS = 3.0
"""So that one takes over soon from another that was killed."""


class Controller:
    """A controller that can be stopped, killed and started again."""

    def __init__(
        self,
        *,
        directory: Path,
        kubeconfig: Path,
        settings: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._kubeconfig = kubeconfig
        self._settings = dict(settings or {})
        self._policy = dict(policy or {"mode": "enforce"})
        self._server: Server | None = None
        self._port = 0
        self._starts = 0

    @property
    def url(self) -> str:
        """Return where its plain routes are."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """Return the process."""
        assert self._server is not None
        return self._server.process.pid

    @property
    def log(self) -> str:
        """Return what it has logged since it was last started."""
        assert self._server is not None
        return self._server.log.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        """Return whether the process is there."""
        return self._server is not None and self._server.process.poll() is None

    def start(self) -> None:
        """Return once it answers its probes. It may have to wait for the Lease still: `leads`.

        Raises:
            ServerError: if it does not come up; the message ends with its log.
        """
        retrying_ports(self._start_once)

    def leads(self) -> bool:
        """Return whether it is the one at work."""
        return self.value("vramgate_controller_leads") == 1

    def stop(self) -> None:
        """Stop the process, which gives its Lease up."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def kill(self) -> None:
        """End the process without a word: its Lease has to run out."""
        if self._server is not None:
            self._server.kill()
            self._server = None

    def metrics(self) -> str:
        """Return the text of `/metrics`."""
        return fetch(f"{self.url}/metrics").decode()

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of a series' samples with these *labels*."""
        total = 0.0
        for line in self.metrics().splitlines():
            found = re.fullmatch(
                rf"{re.escape(name)}(?:\{{(?P<labels>.*)\}})? (?P<value>\S+)", line
            )
            if found is None:
                continue
            have = dict(re.findall(r'(\w+)="([^"]*)"', found["labels"] or ""))
            if labels.items() <= have.items():
                total += float(found["value"])
        return total

    def _start_once(self) -> None:
        (port,) = free_ports(1)
        self._starts += 1
        path = self._directory / "settings.yaml"
        section = {"leaseSeconds": LEASE_SECONDS, **self._settings}
        document = {
            "policy": self._policy,
            # Most tests ask for no estimate, or remember one: each start would import PyTorch.
            "workers": {"preload": []},
            "controller": {"host": "127.0.0.1", "port": port, **section},
        }
        path.write_text(yaml.safe_dump(document))
        argv = [sys.executable, "-m", "admission", "controller"]
        argv += ["--config", str(path), "--kubeconfig", str(self._kubeconfig)]
        url = f"http://127.0.0.1:{port}/readyz"
        self._server = start_ready(
            f"controller-{self._starts}",
            argv,
            directory=self._directory,
            is_ready=lambda: answers(url),
        )
        self._port = port


@contextmanager
def running(controller: Controller) -> Iterator[Controller]:
    """Run *controller* for the length of a `with` block."""
    controller.start()
    try:
        yield controller
    finally:
        controller.stop()
