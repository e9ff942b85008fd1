"""What a pod says, and what this kubelet cannot do with it.

a pod (JSON of the API) -> its parts
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


class PodError(Exception):
    """A pod cannot be run as it is, for now or at all; the message says why."""


def uid(pod: Json) -> str:
    """Return what tells *pod* from others of its name."""
    return str(pod["metadata"]["uid"])


def full_name(pod: Json) -> str:
    """Return namespace and name, for people."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def is_over(pod: Json) -> bool:
    """Return whether its containers have ended for good."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def grace_seconds(pod: Json) -> float | None:
    """Return how long *pod* may take to end; None while it is to run."""
    metadata = pod["metadata"]
    if not metadata.get("deletionTimestamp"):
        return None
    return float(metadata.get("deletionGracePeriodSeconds") or 0)


def field(pod: Json, path: str) -> str:
    """Return what the downward API has at *path*.

    Raises:
        PodError: if it is none of the paths there are.
    """
    metadata, spec = pod["metadata"], pod["spec"]
    status = pod.get("status") or {}
    known = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.podIP": status.get("podIP", ""),
        "status.hostIP": status.get("hostIP", ""),
    }
    if path in known:
        return str(known[path])
    for kind in ("labels", "annotations"):
        if path.startswith(f"metadata.{kind}['") and path.endswith("']"):
            return str((metadata.get(kind) or {}).get(path[len(f"metadata.{kind}['") : -2], ""))
    raise PodError(f"no such field of a pod: {path}")
