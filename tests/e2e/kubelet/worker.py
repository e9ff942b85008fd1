"""One pod on its node, in a thread of its own: from its first volume to its end.

a bound pod -> processes and a status that the API server knows -> no process, no pod

The thread that starts a process must outlive it: the kernel ends the process with it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import client

from tests.e2e.kubelet.container import Container, Launch, now_text
from tests.e2e.kubelet.environment import Image, command, variables
from tests.e2e.kubelet.network import on_loopback
from tests.e2e.kubelet.pods import Json, PodError, full_name, grace_seconds, is_over, uid
from tests.e2e.kubelet.volumes import Volumes

TURN_SECONDS = 0.05
REFRESH_SECONDS = 1.0

AWAY = (client.ApiException, urllib3.exceptions.HTTPError)
"""What a client raises: see `is_passing`."""


def is_passing(error: Exception) -> bool:
    """Return whether *error* is of an API server that is away, or of a pod that is gone."""
    if isinstance(error, client.ApiException):
        return error.status in (0, 404, 409, 429) or error.status >= 500
    return isinstance(error, urllib3.exceptions.HTTPError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the pods of a node have in common."""

    core: client.CoreV1Api
    address: str
    images: Mapping[str, Image]
    directory: Path


class Worker:
    """A pod and what runs of it."""

    def __init__(self, pod: Json, *, host: Host, address: str) -> None:
        self.address = address
        self._pod = pod
        self._host = host
        self._directory = host.directory / full_name(pod).replace("/", "_")
        self._volumes = Volumes(pod, core=host.core, directory=self._directory / "volumes")
        self._containers = [
            Container(
                spec,
                pod=pod["spec"],
                launch=lambda spec=spec: self._launch(spec),  # type: ignore[misc]
            )
            for spec in pod["spec"]["containers"]
        ]
        self._started = now_text()
        self._refresh_at = 0.0
        self._told: Json = {}
        self._message = ""
        self._gone = threading.Event()
        self.thread = threading.Thread(target=self._run, name=full_name(pod))

    def update(self, pod: Json) -> None:
        """Know of a change."""
        self._pod = pod

    def abandon(self) -> None:
        """End without a word: the pod is gone, or the node is."""
        self._gone.set()

    def _run(self) -> None:
        try:
            while not self._gone.is_set() and grace_seconds(self._pod) is None:
                self._take_turn(time.monotonic())
                self._gone.wait(TURN_SECONDS)
            grace = 0.0 if self._gone.is_set() else grace_seconds(self._pod) or 0.0
            self._end(grace)
        finally:
            for container in self._containers:
                container.end(grace_seconds=0)

    def _take_turn(self, now: float) -> None:
        try:
            if now >= self._refresh_at:
                self._refresh_at = now + REFRESH_SECONDS
                self._volumes.refresh()
            if self._pod["spec"].get("initContainers"):
                raise PodError("init containers are not modelled")
            if self._volumes.is_complete:
                for container in self._containers:
                    container.take_turn(now)
            self._message = ""
        except PodError as error:
            self._message = str(error)
            for container in self._containers:
                container.fail(self._message)
        except AWAY as error:
            if not is_passing(error):
                raise
        self._tell()

    def _end(self, grace: float) -> None:
        """End the containers together, then take the pod away."""
        ending = [
            threading.Thread(target=container.end, kwargs={"grace_seconds": grace})
            for container in self._containers
        ]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join()
        while not self._gone.is_set():
            self._tell()
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid(self._pod)}}
            metadata = self._pod["metadata"]
            try:
                self._host.core.delete_namespaced_pod(
                    metadata["name"], metadata["namespace"], body=body
                )
            except AWAY as error:
                if not is_passing(error):
                    raise
            self._gone.wait(TURN_SECONDS)

    def _launch(self, spec: Json) -> Launch:
        image = self._image(spec["image"])
        mounts = dict(self._volumes.mounts(spec))
        address = on_loopback(self.address)
        pod = {**self._pod, "status": {**self._pod.get("status", {}), **self._place}}
        environment = variables(
            spec, pod, core=self._host.core, image=image, address=address, mounts=mounts
        )
        argv = command(spec, image=image, environment=environment, mounts=mounts)
        ports = {
            port["name"]: port["containerPort"]
            for port in spec.get("ports") or ()
            if "name" in port
        }
        return Launch(
            argv=argv,
            environment=environment,
            mounts=mounts,
            address=address,
            ports=ports,
            directory=self._directory,
        )

    def _image(self, name: str) -> Image:
        """Return what stands for the image *name*: it goes by the name without tag and digest."""
        repository = name.partition("@")[0]
        tail = repository.rpartition("/")[2]
        repository = repository.removesuffix(tail) + tail.partition(":")[0]
        if repository not in self._host.images:
            raise PodError(f"image {name}: nothing stands for {repository}")
        return self._host.images[repository]

    @property
    def _place(self) -> dict[str, Any]:
        return {"podIP": self.address, "hostIP": self._host.address}

    def _tell(self) -> None:
        """Tell the API server the status, if it is another than before."""
        status = self._status()
        if status == self._told or is_over(self._pod):
            return
        metadata = self._pod["metadata"]
        dated = [{**each, "lastTransitionTime": now_text()} for each in status["conditions"]]
        body = {"metadata": {"uid": uid(self._pod)}, "status": {**status, "conditions": dated}}
        try:
            self._host.core.patch_namespaced_pod_status(
                metadata["name"], metadata["namespace"], body
            )
        except AWAY as error:
            if not is_passing(error):
                raise
            return
        self._told = status

    def _status(self) -> dict[str, Any]:
        codes = [container.exit_code for container in self._containers]
        is_ready = all(container.is_ready for container in self._containers)
        conditions = {"Initialized": True, "ContainersReady": is_ready, "Ready": is_ready}
        return {
            "phase": self._phase(codes),
            "message": self._message,
            "conditions": [
                {"type": kind, "status": str(holds)} for kind, holds in conditions.items()
            ],
            **self._place,
            "podIPs": [{"ip": self.address}],
            "startTime": self._started,
            "containerStatuses": [container.status for container in self._containers],
        }

    def _phase(self, codes: list[int | None]) -> str:
        if all(code is not None for code in codes):
            return "Failed" if any(codes) else "Succeeded"
        has_started = all(container.has_started for container in self._containers)
        return "Running" if has_started else "Pending"
