"""A kubelet for pods whose containers are commands of this machine.

    node name, images -> a Node, and a process for each container of the pods bound to it

For the pods of Vramgate's own chart: what they need of a kubelet is modelled (volumes, service
account, environment, probes, ends with grace, restarts), and what is not is said in the pod's
status. Each pod has an address of its own (network.py).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from kubernetes import client, watch

from tests.e2e.kubelet.container import now_text
from tests.e2e.kubelet.environment import Image
from tests.e2e.kubelet.pods import Json, is_over, uid
from tests.e2e.kubelet.worker import AWAY, Host, Worker, is_passing

WATCH_SECONDS = 1
"""How long one watch lasts: a kubelet that is to end is told between two."""
JOIN_SECONDS = 30.0


class Kubelet:
    """A node with its pods, for the length of a `with` block; no process is left after it."""

    def __init__(
        self,
        name: str,
        *,
        number: int,
        core: client.CoreV1Api,
        images: Mapping[str, Image],
        directory: Path,
        labels: Mapping[str, str],
    ) -> None:
        self.name = name
        self._labels = labels
        self._core = core
        self._network = f"10.244.{number}"
        self._numbers = itertools.count(2)
        address = f"{self._network}.1"
        self._host = Host(core=core, address=address, images=images, directory=directory)
        self._workers: dict[str, Worker] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=name)

    def __enter__(self) -> Kubelet:
        self._host.directory.mkdir(parents=True)
        self._register()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join()
        for worker in self._workers.values():
            worker.abandon()
        for worker in self._workers.values():
            worker.thread.join(JOIN_SECONDS)

    def _register(self) -> None:
        """Make the node, with room for anything."""
        hostname = {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux"}
        metadata = {"name": self.name, "labels": {**hostname, **self._labels}}
        self._core.create_node({"metadata": metadata})
        resources = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110"}
        times = {"lastHeartbeatTime": now_text(), "lastTransitionTime": now_text()}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
        status = {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{**ready, **times}],
            "addresses": [{"type": "InternalIP", "address": self._host.address}],
        }
        self._core.patch_node_status(self.name, {"status": status})

    def _follow(self) -> None:
        """See every pod of the node from the start, then each change, and so on."""
        while not self._ending.is_set():
            events = watch.Watch().stream(
                self._core.list_pod_for_all_namespaces,
                field_selector=f"spec.nodeName={self.name}",
                timeout_seconds=WATCH_SECONDS,
            )
            try:
                for event in events:
                    self._take_up(event["type"], event["raw_object"])
            except AWAY as error:
                if not is_passing(error):
                    raise
                self._ending.wait(WATCH_SECONDS)

    def _take_up(self, kind: str, pod: Json) -> None:
        known = self._workers.get(uid(pod))
        if kind == "DELETED":
            if known is not None:
                known.abandon()
        elif known is not None:
            known.update(pod)
        elif not is_over(pod):
            worker = Worker(pod, host=self._host, address=f"{self._network}.{next(self._numbers)}")
            self._workers[uid(pod)] = worker
            worker.thread.start()
