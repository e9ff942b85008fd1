"""Probes: a question to a container at its turn, and what to make of the answers.

    probe, clock -> succeeded, failed, or neither yet

The API server has filled every default in by then. Not modelled: gRPC.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.kubelet.pods import Json, PodError

Ask = Callable[[Json], bool]


class Probe:
    """One probe of a running container."""

    def __init__(self, probe: Json, *, ask: Ask, now: float) -> None:
        self._probe = probe
        self._ask = ask
        self._due = now + float(probe.get("initialDelaySeconds", 0))
        self._in_row = 0
        self._last: bool | None = None
        self.outcome: bool | None = None
        """What the answers come to: whether it holds. None before there are enough of them."""

    def take_turn(self, now: float) -> None:
        """Ask, if it is time."""
        if now < self._due:
            return
        self._due = now + float(self._probe["periodSeconds"])
        answer = self._ask(self._probe)
        self._in_row = self._in_row + 1 if answer == self._last else 1
        self._last = answer
        if self._in_row >= self._probe["successThreshold" if answer else "failureThreshold"]:
            self.outcome = answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks a container of a pod."""

    address: str
    """Where the pod is on this machine."""
    ports: dict[str, int]
    """Ports by name."""
    run: Callable[[list[str], float], bool]
    """Run a command in the container: whether it ends well, and in time."""

    def __call__(self, probe: Json) -> bool:
        """Return whether what *probe* asks for is so.

        Raises:
            PodError: if it asks in a way that is not known here.
        """
        timeout = float(probe["timeoutSeconds"])
        if "httpGet" in probe:
            return self._get(probe["httpGet"], timeout)
        if "tcpSocket" in probe:
            return self._connect(self._port(probe["tcpSocket"]["port"]), timeout)
        if "exec" in probe:
            return self.run(probe["exec"]["command"], timeout)
        raise PodError(f"probe is not modelled: {sorted(probe)}")

    def _get(self, action: Json, timeout: float) -> bool:
        place = (self.address, self._port(action["port"]))
        connection = http.client.HTTPConnection(*place, timeout=timeout)
        if action.get("scheme", "HTTP") == "HTTPS":
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE  # as a kubelet does
            connection = http.client.HTTPSConnection(*place, timeout=timeout, context=context)
        headers = {each["name"]: each["value"] for each in action.get("httpHeaders") or ()}
        try:
            connection.request("GET", action.get("path", "/"), headers=headers)
            return 200 <= connection.getresponse().status < 400
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _connect(self, port: int, timeout: float) -> bool:
        try:
            socket.create_connection((self.address, port), timeout=timeout).close()
        except OSError:
            return False
        return True

    def _port(self, port: int | str) -> int:
        if isinstance(port, int):
            return port
        if port not in self.ports:
            raise PodError(f"probe: no port is called {port}")
        return self.ports[port]


def ended_well(argv: list[str], timeout: float, *, environment: dict[str, str]) -> bool:
    """Return whether *argv* ends with status 0 within *timeout* seconds."""
    try:
        done = subprocess.run(
            argv,
            env=environment,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
