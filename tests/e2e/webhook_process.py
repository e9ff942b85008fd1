"""Start `vramgate serve` as a child process and wait until it is ready to answer.

    settings, kubeconfig, a serving certificate -> a running webhook on loopback

The only file here that knows the webhook's command line and settings.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.certificates import Authority
from tests.e2e.processes import (
    Server,
    answers,
    fetch,
    free_ports,
    retrying_ports,
    start,
    wait_until_ready,
)

READY_SECONDS = 300.0
"""A worker that imports PyTorch on two busy cores takes most of it."""

SAMPLE = re.compile(r"^vramgate_reviews_total\{(?P<labels>[^}]*)\} (?P<value>\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')


class Webhook:
    """A webhook that can be stopped and started again on its port."""

    def __init__(
        self,
        *,
        directory: Path,
        kubeconfig: Path,
        authority: Authority,
        preload: Sequence[str] = ("pytorch",),
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._preload = preload
        self._kubeconfig = kubeconfig
        self._authority = authority
        self._server: Server | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """Return the port of loopback, known from the first start on."""
        return self._port

    @property
    def url(self) -> str:
        """Return where the server is; the API server calls paths below it."""
        return f"https://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Return when the webhook is ready, on its old port or at first on a free one.

        Raises:
            ServerError: if it does not come up; the message ends with its log.
        """
        retrying_ports(self._start_once)

    def stop(self) -> None:
        """Stop the process; the port stays known for the next start."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def kill(self) -> None:
        """End the process without a word, as on a node that dies."""
        if self._server is not None:
            self._server.kill()
            self._server = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Leave the webhook stopped for the length of a `with` block."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def num_reviews(self, **labels: str) -> int:
        """Return how many reviews with these *labels* were answered since the start."""
        return sum(
            int(float(sample["value"]))
            for sample in SAMPLE.finditer(self.metrics())
            if labels.items() <= dict(LABEL.findall(sample["labels"])).items()
        )

    def metrics(self) -> str:
        """Return the text of `/metrics`."""
        return fetch(f"{self.url}/metrics", authority=self._authority.path).decode()

    def _start_once(self) -> None:
        port = self._port or free_ports(1)[0]
        server = start("webhook", self._argv(port), directory=self._directory)
        url = f"https://127.0.0.1:{port}/readyz"
        try:
            wait_until_ready(
                server,
                lambda: answers(url, authority=self._authority.path),
                seconds=READY_SECONDS,
            )
        except BaseException:
            server.stop()
            raise
        self._server, self._port = server, port

    def _argv(self, port: int) -> list[str]:
        """Write certificate and settings for *port* and return the command that reads them."""
        pair = self._authority.issue("webhook", directory=self._directory)
        path = self._directory / "settings.yaml"
        document = settings(
            port=port, certificate=pair.public, key=pair.private, preload=self._preload
        )
        path.write_text(yaml.safe_dump(document))
        argv = [sys.executable, "-m", "admission", "serve"]
        return [*argv, "--config", str(path), "--kubeconfig", str(self._kubeconfig)]


def settings(
    *, port: int, certificate: Path, key: Path, preload: Sequence[str]
) -> Mapping[str, Any]:
    """Return the settings file: enforcing, so that namespaces can loosen it by their label."""
    return {
        "server": {
            "host": "127.0.0.1",
            "port": port,
            "certFile": str(certificate),
            "keyFile": str(key),
        },
        "policy": {"mode": "enforce"},
        "workers": {"preload": list(preload)},
        "metrics": {"workloads": 50},
    }


def start_webhook(*, directory: Path, kubeconfig: Path, authority: Authority) -> Webhook:
    """Return a webhook that is ready on a free port of loopback."""
    webhook = Webhook(directory=directory, kubeconfig=kubeconfig, authority=authority)
    webhook.start()
    return webhook
