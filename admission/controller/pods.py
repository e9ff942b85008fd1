"""Pods that may hold GPUs, as the controller keeps them.

    Pod -> what is kept of it -> PodView

Of 20,000 pods little may be kept: no container's command, no environment. Whoever acts reads the
pod whole, then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from admission.capacity.eligibility import QUEUE_LABEL
from admission.cluster import Resource
from admission.controller.devices import devices_of
from admission.controller.refs import Ref, owner_of
from admission.steer.gates import GATE as GATE
from admission.steer.notes import PREFIX
from admission.values import Json
from admission.workloads.fields import MAX_COUNT, number, part, parts, word, words_of
from admission.workloads.resources import is_counted

PAGE = 250
MAX_MESSAGE = 2048
"""Of a container's end: the kubelet keeps as much."""
_MARKS = ("gpu-memory", "gpu-fraction", "gpumem")
_STATUSES = ("initContainerStatuses", "containerStatuses")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How one container ended."""

    container: str
    exit_code: int
    reason: str
    """As the kubelet says it: `Error`, `OOMKilled`, `Completed`."""
    message: str
    finished: str
    """When, as the API server writes it; empty if it is not told."""
    restarts: int
    """How often the container was started again before: with the container it names the death."""
    is_current: bool
    """False: it was started again since, in the same pod."""


class PodView:
    """One pod, read from what is kept of it."""

    __slots__ = ("_item",)

    def __init__(self, item: Json) -> None:
        self._item = item

    @property
    def ref(self) -> Ref:
        """Return what refers to it."""
        meta = self._item["metadata"]
        return Ref(
            api_version="v1",
            kind="Pod",
            namespace=meta["namespace"],
            name=meta["name"],
            uid=meta["uid"],
        )

    @property
    def key(self) -> str:
        """Return `NAMESPACE/NAME`."""
        meta = self._item["metadata"]
        return f"{meta['namespace']}/{meta['name']}"

    @property
    def uid(self) -> str:
        """Return its UID."""
        return str(self._item["metadata"]["uid"])

    @property
    def owner(self) -> Ref | None:
        """Return its controller, None for a pod of nobody's."""
        owner: Ref | None = self._item["metadata"]["owner"]
        return owner

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return those of ours."""
        found: Mapping[str, str] = self._item["metadata"]["annotations"]
        return found

    @property
    def queue(self) -> str | None:
        """Return the Kueue queue it waits or waited in."""
        found: str | None = self._item["metadata"]["queue"]
        return found

    @property
    def created(self) -> datetime | None:
        """Return when it was made."""
        return moment(self._item["metadata"]["created"])

    @property
    def is_going(self) -> bool:
        """Return whether it is being deleted."""
        return bool(self._item["metadata"]["going"])

    @property
    def node(self) -> str | None:
        """Return the node it is bound to."""
        found: str | None = self._item["spec"]["node"]
        return found

    @property
    def devices(self) -> tuple[tuple[str, int], ...]:
        """Return what it takes of a node while it is there: resources of plugins, their number."""
        found: tuple[tuple[str, int], ...] = self._item["spec"]["devices"]
        return found

    @property
    def is_gated(self) -> bool:
        """Return whether it waits for its estimate."""
        return GATE in self._item["spec"]["gates"]

    @property
    def has_gates(self) -> bool:
        """Return whether anybody's gate holds it."""
        return bool(self._item["spec"]["gates"])

    @property
    def gpus(self) -> int:
        """Return how many GPUs, or shares of one, its containers ask for together."""
        return int(self._item["spec"]["gpus"])

    @property
    def phase(self) -> str:
        """Return `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`."""
        return str(self._item["status"]["phase"])

    @property
    def unschedulable(self) -> str | None:
        """Return what the scheduler says why it fits no node; None if it says nothing of it."""
        found: str | None = self._item["status"]["unschedulable"]
        return found

    @property
    def unschedulable_since(self) -> datetime | None:
        """Return since when."""
        return moment(self._item["status"]["since"])

    @property
    def finished(self) -> datetime | None:
        """Return when the last of its containers ended, once the pod has."""
        return moment(self._item["status"]["finished"])

    @property
    def endings(self) -> tuple[Ending, ...]:
        """Return how its containers ended with a status other than 0, the current and the last."""
        found: tuple[Ending, ...] = self._item["status"]["endings"]
        return found


def moment(text: str | None) -> datetime | None:
    """Return the time that the API server wrote as *text*; None if it says no time zone."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found


def cut_pod(pod: Json) -> Json | None:
    """Return what is kept of a pod; None for one that has nothing to do with GPUs."""
    meta, spec, status = (part(part(pod).get(key)) for key in ("metadata", "spec", "status"))
    annotations = words_of(meta.get("annotations"))
    ours = {key: text for key, text in annotations.items() if key.startswith(PREFIX)}
    gates = tuple(word(each.get("name")) for each in parts(spec.get("schedulingGates")))
    if not ours and GATE not in gates and not asks_for_devices(spec, annotations):
        return None
    namespace = word(meta.get("namespace"))
    unschedulable, since = _unscheduled(status)
    return {
        "metadata": {
            "name": word(meta.get("name")),
            "namespace": namespace,
            "uid": word(meta.get("uid")),
            "owner": owner_of(meta, namespace=namespace),
            "annotations": ours,
            "queue": words_of(meta.get("labels")).get(QUEUE_LABEL),
            "created": word(meta.get("creationTimestamp")),
            "going": bool(meta.get("deletionTimestamp")),
        },
        "spec": {
            "node": word(spec.get("nodeName")) or None,
            "gates": gates,
            "gpus": _gpus(spec),
            "devices": devices_of(spec),
        },
        "status": {
            "phase": word(status.get("phase")) or "Pending",
            "unschedulable": unschedulable,
            "since": since,
            "endings": tuple(_endings(status)),
            "finished": _finished(status),
        },
    }


def asks_for_devices(spec: Json, annotations: Json) -> bool:
    """Return whether a pod may get a GPU: by a device plugin, a claim, or a share of a card."""
    if spec.get("resourceClaims") or any(mark in key for key in annotations for mark in _MARKS):
        return True
    for key in ("containers", "initContainers"):
        for container in parts(spec.get(key)):
            resources = part(container.get("resources"))
            amounts = (*part(resources.get("limits")), *part(resources.get("requests")))
            if any("/" in name for name in amounts):
                return True
    return False


def _gpus(spec: Json) -> int:
    """Return the GPUs of the containers that run together; those of claims are not counted."""
    total = 0
    for container in parts(spec.get("containers")):
        resources = part(container.get("resources"))
        amounts = part(resources.get("limits")) or part(resources.get("requests"))
        for name, amount in amounts.items():
            text = str(amount) if isinstance(amount, str | int) else ""
            if is_counted(name) and text.isascii() and text.isdigit() and len(text) < 20:
                total += min(int(text), MAX_COUNT)
    return total


def _unscheduled(status: Json) -> tuple[str | None, str | None]:
    for each in parts(status.get("conditions")):
        if each.get("type") == "PodScheduled" and each.get("reason") == "Unschedulable":
            since = word(each.get("lastTransitionTime"))
            return word(each.get("message"))[:MAX_MESSAGE], since
    return None, None


def _finished(status: Json) -> str | None:
    if status.get("phase") not in ("Succeeded", "Failed"):
        return None
    times = (
        word(part(part(each.get("state")).get("terminated")).get("finishedAt"))
        for each in parts(status.get("containerStatuses"))
    )
    return max(times, default="") or None


def _endings(status: Json) -> list[Ending]:
    found = []
    for key in _STATUSES:
        for each in parts(status.get(key)):
            restarts = number(each.get("restartCount"))
            current = part(part(each.get("state")).get("terminated"))
            last = part(part(each.get("lastState")).get("terminated"))
            for ended, is_current in ((current, True), (last, False)):
                if type(ended.get("exitCode")) is int and ended["exitCode"]:
                    before = restarts if is_current else max(0, restarts - 1)
                    found.append(_ending(each, ended, before, is_current=is_current))
    return found


def _ending(status: Json, ended: Json, restarts: int, *, is_current: bool) -> Ending:
    return Ending(
        container=word(status.get("name")),
        exit_code=ended["exitCode"],
        reason=word(ended.get("reason")),
        message=word(ended.get("message"))[-MAX_MESSAGE:],
        finished=word(ended.get("finishedAt")),
        restarts=restarts,
        is_current=is_current,
    )


PODS = Resource(path="/api/v1/pods", cut=cut_pod, page=PAGE, in_namespaces=True)
