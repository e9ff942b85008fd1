"""Which object is meant, and where the API server has it.

    apiVersion, kind -> plural -> path

Plurals come from the API server's own discovery, once a group and version.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from admission.errors import ClusterError
from admission.objects import Objects
from admission.values import Json
from admission.workloads.fields import part, parts, word

MAX_KINDS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """One object of the cluster. Two with one name at different times differ by UID."""

    api_version: str
    kind: str
    namespace: str
    """Empty: it is in none."""
    name: str
    uid: str

    @property
    def group(self) -> str:
        """Return the API group; empty for the core one."""
        return self.api_version.rpartition("/")[0]

    @property
    def said(self) -> str:
        """Return what people call it: `Job team-a/train`."""
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"


def ref_of(obj: Json) -> Ref:
    """Return what refers to *obj*, a whole object."""
    metadata = part(obj.get("metadata"))
    return Ref(
        api_version=word(obj.get("apiVersion")),
        kind=word(obj.get("kind")),
        namespace=word(metadata.get("namespace")),
        name=word(metadata.get("name")),
        uid=word(metadata.get("uid")),
    )


def owner_of(metadata: Json, *, namespace: str) -> Ref | None:
    """Return the controller that an object's *metadata* names, in the same namespace."""
    for owner in parts(metadata.get("ownerReferences")):
        if owner.get("controller") is True:
            return Ref(
                api_version=word(owner.get("apiVersion")),
                kind=word(owner.get("kind")),
                namespace=namespace,
                name=word(owner.get("name")),
                uid=word(owner.get("uid")),
            )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """How the API server serves a kind."""

    plural: str
    in_namespaces: bool


class Discovery:
    """Asks what the API server serves; in any thread."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[str, Mapping[str, Served]] = {}
        self._lock = threading.Lock()

    def served(self, api_version: str, kind: str) -> Served | None:
        """Return how *kind* is served; None if it is not (yet): that is asked again next time.

        Raises:
            ClusterError: if the API server refuses, or does not answer.
        """
        with self._lock:
            known = self._known.get(api_version)
        if known is None or kind not in known:
            document = self._objects.read(root_of(api_version)).document
            known = _kinds(document or {})
            with self._lock:
                self._known[api_version] = known
        return known.get(kind)

    def path(self, ref: Ref) -> str:
        """Return where *ref* is.

        Raises:
            ClusterError: if its kind is not served (404), or nobody answers.
        """
        return f"{self.collection(ref.api_version, ref.kind, ref.namespace)}/{ref.name}"

    def collection(self, api_version: str, kind: str, namespace: str) -> str:
        """Return where objects of *kind* in *namespace* are; all of them for an empty one.

        Raises:
            ClusterError: as `path` does.
        """
        served = self.served(api_version, kind)
        if served is None:
            raise ClusterError(404, said=f"{kind} of {api_version} is not served")
        place = f"/namespaces/{namespace}" if served.in_namespaces and namespace else ""
        return f"{root_of(api_version)}{place}/{served.plural}"


def root_of(api_version: str) -> str:
    """Return the path below which a group and version is served."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _kinds(document: Json) -> dict[str, Served]:
    found: dict[str, Served] = {}
    for each in parts(document.get("resources"))[:MAX_KINDS]:
        name, kind = word(each.get("name")), word(each.get("kind"))
        if name and kind and "/" not in name:
            found[kind] = Served(plural=name, in_namespaces=each.get("namespaced") is True)
    return found
