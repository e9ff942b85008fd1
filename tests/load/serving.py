"""The process under load: `vramgate serve`, with a certificate that can be renewed.

settings, kubeconfig -> a running server, what it shows, how it ends
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from admission.config import Settings, parse_settings
from tests.e2e.certificates import Authority, authority
from tests.e2e.processes import Server, ServerError, free_ports, start
from tests.load.connection import connect, fetched
from tests.load.expected import class_series

READY_SECONDS = 180.0
WAIT_SECONDS = 300.0
"""For whatever is waited for: a machine under load takes its time, one that hangs does not."""
STOP_SECONDS = 60.0
POLL_SECONDS = 0.05
CACHE_ENTRIES = 1000
"""Few enough that answers are forgotten, and memory is flat, early in a run."""
FAILURE_SECONDS = 2.0
"""What failed once is tried again soon: a killed worker spoils few answers."""
NAME = "serving"
KILLED_AT_START = "the estimator process did not start (signal 9)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """One server on loopback."""

    server: Server
    port: int
    folder: Path
    authority: Authority
    context: ssl.SSLContext

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self.server.process.pid

    async def metrics(self) -> bytes:
        """Return the text of `/metrics`."""
        return (await fetched(self.port, self.context, "/metrics"))[1]

    async def shows(self, series: frozenset[str]) -> bool:
        """Return whether the cards it shows are those of *series*."""
        return class_series(await self.metrics()) == series

    async def renew(self) -> None:
        """Write a new certificate, and return once it is served."""
        pair = self.authority.issue(NAME, directory=self.folder)
        written = x509.load_pem_x509_certificate(pair.public.read_bytes())
        wanted = written.public_bytes(Encoding.DER)

        async def is_served() -> bool:
            connection = await connect(self.port, self.context)
            shown = connection.certificate
            connection.close()
            return shown == wanted

        await until(is_served, what="the renewed certificate")

    async def stop(self) -> int:
        """Tell it to end, and return its exit status once it has."""
        process = self.server.process
        process.terminate()
        return await asyncio.to_thread(process.wait, STOP_SECONDS)

    def complaints(self, *, num_killed: int) -> tuple[int, list[str]]:
        """Return the number of tracebacks in its log, and the lines of errors.

        *num_killed* templates were killed by us: as many may have been at their start.
        """
        tracebacks, errors = 0, []
        with self.server.log.open(errors="replace") as lines:
            for line in lines:
                tracebacks += "Traceback" in line
                if KILLED_AT_START in line and num_killed:
                    num_killed -= 1
                    continue
                if '"level":"error"' in line or '"level":"critical"' in line or not _is_json(line):
                    errors.append(line.rstrip()[:1000])
        return tracebacks, errors


@asynccontextmanager
async def serving(
    settings: str, *, port: int, kubeconfig: Path, folder: Path
) -> AsyncIterator[Serving]:
    """Run the server for the length of an `async with` block."""
    made = authority(folder)
    made.issue(NAME, directory=folder)
    path = folder / "settings.yaml"
    path.write_text(settings)
    command = [sys.executable, "-m", "admission", "serve"]
    command += ["--config", str(path), "--kubeconfig", str(kubeconfig)]
    running = Serving(
        server=start("serve", command, directory=folder),
        port=port,
        folder=folder,
        authority=made,
        context=ssl.create_default_context(cafile=str(made.path)),
    )
    try:
        await until(lambda: _is_ready(running), what="a server that is ready")
        yield running
    finally:
        await asyncio.to_thread(running.server.stop)


def settings_text(*, folder: Path, port: int, hub: str, uses_torch: bool) -> str:
    """Return the settings file: as installed, with its own certificate, Hub and a small cache."""
    document = {
        "server": {
            "host": "127.0.0.1",
            "port": port,
            "certFile": str(folder / NAME / "tls.crt"),
            "keyFile": str(folder / NAME / "tls.key"),
        },
        "policy": {"mode": "warn"},
        "nodes": {"keepDays": 0},
        "cache": {
            "entries": CACHE_ENTRIES,
            "failureSeconds": FAILURE_SECONDS,
            "timeoutFailureSeconds": FAILURE_SECONDS,
        },
        "sources": {"hub": {"endpoint": hub}},
        "workers": {"preload": ["mxnet", "pytorch"] if uses_torch else ["mxnet"]},
    }
    return yaml.safe_dump(document)


def parsed(text: str) -> Settings:
    """Return the settings that the server reads in *text*."""
    return parse_settings(text)


def free_port() -> int:
    """Return a port that is free now."""
    return free_ports(1)[0]


async def until(
    condition: Callable[[], Awaitable[bool]], *, what: str, seconds: float = WAIT_SECONDS
) -> None:
    """Return once *condition* holds.

    Raises:
        TimeoutError: if it does not in time; the message says *what* did not happen.
    """
    deadline = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        await asyncio.sleep(POLL_SECONDS)


async def _is_ready(running: Serving) -> bool:
    if running.server.process.poll() is not None:
        raise ServerError(f"serve ended\n{running.server.tail()}")
    try:
        status, _ = await fetched(running.port, running.context, "/readyz")
    except OSError:
        return False
    return status == HTTPStatus.OK


def _is_json(line: str) -> bool:
    return line.startswith("{") or not line.strip()
