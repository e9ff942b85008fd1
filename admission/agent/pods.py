"""The pods of this node, as the API server tells them.

Pod -> what is kept of it; snapshot of a watch -> pods by UID, owners by container id
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from admission.cluster import Resource
from admission.peaks import ANNOTATION
from admission.steer.notes import ESTIMATE
from admission.values import Json
from admission.watch import Snapshot
from admission.workloads.fields import part, parts, word, words_of

PAGE = 10
"""Pods a page: one is some 10 KiB of text and several times that once it is read."""
_NUMBER = re.compile("[0-9]{1,15}")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_ENDED = {"Succeeded": "succeeded", "Failed": "failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """What is known of one pod."""

    uid: str
    namespace: str
    name: str
    ended: str | None = None
    """`succeeded` or `failed` once all its containers have ended for good."""
    estimate: int | None = None
    """What its annotation says a card will hold, in bytes."""
    peaks: str = ""
    """What its annotation says of peaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose memory it is: a container of a pod. One that restarts is the same container."""

    uid: str
    container: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Every pod of this node."""

    by_uid: Mapping[str, Pod] = field(default_factory=dict)
    owners: Mapping[str, Owner] = field(default_factory=dict)
    """By the id that the runtime gave the container."""


def resource_of(node: str) -> Resource:
    """Return what to follow: the pods that are bound to *node*, and no others."""
    fields = f"spec.nodeName={node}"
    return Resource(path="/api/v1/pods", cut=cut_pod, fields=fields, page=PAGE, in_namespaces=True)


def cut_pod(pod: Json) -> Json:
    """Return what is kept of a pod. Of one that has ended, no containers: there may be many."""
    metadata, status = (part(part(pod).get(key)) for key in ("metadata", "status"))
    annotations, phase = words_of(metadata.get("annotations")), word(status.get("phase"))
    has_ended = phase in _ENDED
    return {
        "metadata": {
            # A watch keeps objects by this name, and a node has pods of many namespaces.
            "name": f"{metadata.get('namespace')}/{metadata.get('name')}",
            "uid": metadata.get("uid"),
            "annotations": {
                key: annotations[key] for key in (ESTIMATE, ANNOTATION) if key in annotations
            },
        },
        "status": {
            "phase": phase,
            "containers": {} if has_ended else _containers(status),
        },
    }


def _containers(status: Json) -> dict[str, str]:
    """Return each container's name by its id (`containerd://ID`, `cri-o://ID`, `docker://ID`)."""
    return {
        number: word(each.get("name"))
        for key in _STATUSES
        for each in parts(status.get(key))
        if (number := word(each.get("containerID")).rpartition("//")[2])
    }


def pods_of(snapshot: Snapshot) -> Pods:
    """Return the pods of a watch's *snapshot*."""
    pods = {pod.uid: pod for pod in map(_pod, snapshot.values())}
    owners = {
        number: Owner(uid=str(item["metadata"]["uid"]), container=container)
        for item in snapshot.values()
        for number, container in item["status"]["containers"].items()
    }
    return Pods(by_uid=pods, owners=owners)


def _pod(item: Json) -> Pod:
    metadata = item["metadata"]
    namespace, _, name = metadata["name"].partition("/")
    estimate = metadata["annotations"].get(ESTIMATE, "")
    return Pod(
        uid=str(metadata["uid"]),
        namespace=namespace,
        name=name,
        ended=_ENDED.get(item["status"]["phase"]),
        estimate=int(estimate) if _NUMBER.fullmatch(estimate) else None,
        peaks=metadata["annotations"].get(ANNOTATION, ""),
    )
