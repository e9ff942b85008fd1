"""One container of a pod: its process, its probes, and what is told of both.

container, how to start it -> a process, started again as the pod's policy says -> a status

Not modelled: images, limits, users, log rotation.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.kubelet.environment import placed
from tests.e2e.kubelet.pods import Json
from tests.e2e.kubelet.probes import Asker, Probe, ended_well
from tests.e2e.processes import Server, start

FIRST_BACK_OFF_SECONDS = 10.0
LONGEST_BACK_OFF_SECONDS = 300.0
POLL_SECONDS = 0.02

CREATING: Json = {"waiting": {"reason": "ContainerCreating"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start a container's process, and where it will be."""

    argv: list[str]
    environment: dict[str, str]
    mounts: dict[str, Path]
    """Paths in the container, and the folders of this machine that they are."""
    address: str
    ports: dict[str, int]
    directory: Path


class Container:
    """A container, from before its first start to its end."""

    def __init__(self, spec: Json, *, pod: Json, launch: Callable[[], Launch]) -> None:
        self._spec = spec
        self._restart_policy = pod["restartPolicy"]
        self._grace_seconds = float(pod.get("terminationGracePeriodSeconds", 30))
        self._launch = launch
        self._launched: Launch | None = None
        self._server: Server | None = None
        self._probes: dict[str, Probe] = {}
        self._start_at = 0.0
        self._num_starts = 0
        self._started = ""
        self._state = CREATING
        self._last_state: Json = {}

    @property
    def status(self) -> Json:
        """Return what a pod's status says of it."""
        return {
            "name": self._spec["name"],
            "image": self._spec["image"],
            "imageID": "",
            "ready": self.is_ready,
            "started": self._is_started,
            "restartCount": max(self._num_starts - 1, 0),
            "state": self._state,
            "lastState": self._last_state,
        }

    @property
    def is_ready(self) -> bool:
        """Return whether it takes requests."""
        return self._is_started and self._holds("readinessProbe") is True

    @property
    def exit_code(self) -> int | None:
        """Return how it ended for good; None while it runs or is to run again."""
        terminated = self._state.get("terminated")
        return terminated["exitCode"] if terminated else None

    @property
    def has_started(self) -> bool:
        """Return whether its process ever ran."""
        return self._num_starts > 0

    @property
    def _is_started(self) -> bool:
        return self._server is not None and self._holds("startupProbe") is True

    def take_turn(self, now: float) -> None:
        """Start the process, see whether it has ended, ask it what is due."""
        if self.exit_code is not None:
            return
        if self._server is None:
            if now >= self._start_at:
                self._start(now)
            return
        code = _exit_code(self._server)
        if code is not None:
            self._server.kill()  # what it left in its group
            self._ended(code, now)
            return
        self._probe(now)

    def end(self, *, grace_seconds: float) -> None:
        """End the process: its hook, SIGTERM, and after *grace_seconds* of both SIGKILL."""
        if self._server is None:
            return
        deadline = time.monotonic() + grace_seconds
        hook = (self._spec.get("lifecycle") or {}).get("preStop")
        if hook and grace_seconds:
            argv = (hook.get("exec") or {}).get("command") or ["false"]
            self._run(argv, grace_seconds)
        code = _exit_code(self._server)
        if code is None and grace_seconds:
            self._server.process.terminate()
            while (code := _exit_code(self._server)) is None and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
        self._server.kill()
        self._server = None
        self._state = self._terminated(137 if code is None else code)

    def fail(self, message: str) -> None:
        """Say why it cannot be started, if it is to be."""
        if self._server is None and self.exit_code is None:
            self._state = {"waiting": {"reason": "CreateContainerConfigError", "message": message}}

    def _start(self, now: float) -> None:
        launch = self._launch()
        name = f"{self._spec['name']}-{self._num_starts}"
        self._launched = launch
        self._server = start(
            name, launch.argv, directory=launch.directory, environment=launch.environment
        )
        asker = Asker(address=launch.address, ports=launch.ports, run=self._run)
        kinds = ("startupProbe", "readinessProbe", "livenessProbe")
        self._probes = {
            kind: Probe(self._spec[kind], ask=asker, now=now)
            for kind in kinds
            if self._spec.get(kind)
        }
        self._num_starts += 1
        self._started = now_text()
        self._state = {"running": {"startedAt": self._started}}

    def _run(self, argv: list[str], limit_seconds: float) -> bool:
        """Run *argv* in the container: whether it ends well, and in time."""
        assert self._launched is not None
        environment = self._launched.environment
        argv = placed(argv, self._launched.mounts)
        return ended_well(argv, limit_seconds, environment=environment)

    def _probe(self, now: float) -> None:
        due = ["startupProbe"] if not self._is_started else ["readinessProbe", "livenessProbe"]
        for kind in due:
            if kind in self._probes:
                self._probes[kind].take_turn(now)
        if self._holds("startupProbe") is False or self._holds("livenessProbe") is False:
            self.end(grace_seconds=self._grace_seconds)
            self._ended(self.exit_code or 0, now)

    def _ended(self, code: int, now: float) -> None:
        """Wait for the next start, or stay ended."""
        self._server = None
        self._state = self._terminated(code)
        if self._restart_policy == "Never" or (self._restart_policy == "OnFailure" and code == 0):
            return
        self._last_state = self._state
        self._state = {"waiting": {"reason": "CrashLoopBackOff"}}
        # The first time at once, as a kubelet does.
        delay = FIRST_BACK_OFF_SECONDS * 2 ** (self._num_starts - 2)
        self._start_at = now + (min(delay, LONGEST_BACK_OFF_SECONDS) if self._num_starts > 1 else 0)

    def _terminated(self, code: int) -> Json:
        reason = "Error" if code else "Completed"
        ended = {"exitCode": code, "reason": reason, "startedAt": self._started}
        return {"terminated": {**ended, "finishedAt": now_text()}}

    def _holds(self, kind: str) -> bool | None:
        """Return the outcome of a probe; one that nobody asked for holds."""
        return self._probes[kind].outcome if kind in self._probes else True


def _exit_code(server: Server) -> int | None:
    """Return how the process of *server* ended, in a shell's way; None while it runs."""
    ended = os.waitid(os.P_PID, server.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    if ended is None:
        return None
    return ended.si_status + (0 if ended.si_code == os.CLD_EXITED else 128)


def now_text() -> str:
    """Return the time of day as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
