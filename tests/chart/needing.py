"""What each right is needed for: the call of the product itself, and what it tells without it.

client of an account, Right -> what was told; None where the call was let

Watches are the product's, with their lines and their metric; objects are read and written by what
the duties, the keeper of certificates, the Lease and the agent use.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from structlog.testing import capture_logs

from admission.agent.marks import Note
from admission.agent.pods import Pod, resource_of
from admission.agent.problems import AgentProblem
from admission.agent.writing import Writer
from admission.certificate_settings import CertificateSettings, SecretPlace
from admission.certificates.builtin import cut_version
from admission.certificates.keeper import Keeper
from admission.certificates.problems import CertificateProblem, Telling
from admission.cluster import NAMESPACES, NODES, Client, Resource
from admission.commands.learned import followed_learnt
from admission.controller.acting import Acting, Outcome
from admission.controller.acts import Act, Merge, Reason, Remove, Tell, Write
from admission.controller.duties.queue import Queue
from admission.controller.judging import Judges
from admission.controller.learning import Learning
from admission.controller.lease import Lease
from admission.controller.pods import PODS
from admission.controller.refs import Discovery, ref_of, root_of
from admission.controller.tracked import TRACKED, tracked_resource
from admission.errors import ClusterError
from admission.floor import Floor
from admission.learning.deaths import CONFIG_MAP, Death
from admission.objects import ClusterObjects, WritableObjects
from admission.outages import Followed, Outages
from admission.sources.cluster_objects import ClusterObjects as ReferredObjects
from admission.sources.references import Origin, Reference
from admission.values import Json
from admission.watch import Watch
from tests.chart.rendering import NAMESPACE
from tests.chart.rights import RELEASE, Right

ANSWER_SECONDS = 30.0
NODE = "gpu-a"
ORIGINS = {
    "configmaps": Origin.CONFIG_MAP,
    "resourceclaims": Origin.RESOURCE_CLAIM,
    "resourceclaimtemplates": Origin.RESOURCE_CLAIM_TEMPLATE,
    "trainingruntimes": Origin.TRAINING_RUNTIME,
    "clustertrainingruntimes": Origin.CLUSTER_TRAINING_RUNTIME,
}
SECRET = f"{RELEASE}-vramgate-certificates"
CONFIGURATIONS = (f"{RELEASE}-vramgate", f"{RELEASE}-vramgate-closed")
OWNERS = {
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "rayclusters.ray.io",
    "mxjobs.kubeflow.org",
    "elasticjobs.elastic.pytorch.org",
}
"""Controllers of pods that are not followed themselves."""
NOT_YET = "429"
"""What an API server answers while it makes the storage of a kind; the watch asks again."""
REGISTRATIONS = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who asks, and about what."""

    client: Client
    right: Right
    made: Callable[[Right], Json]
    """Return an object of the right's kind that was just made, for what changes or deletes one."""


class _Heard(Outages):
    """What a watch tells; known as soon as it tells anything."""

    def __init__(self) -> None:
        super().__init__(lambda kinds: self.interrupted.append(kinds))
        self.interrupted: list[frozenset[str]] = []
        self.refusal: str | None = None
        self.heard = threading.Event()

    def failed(self, what: Followed, reason: str, *, is_away: bool) -> None:
        super().failed(what, reason, is_away=is_away)
        if NOT_YET in reason:
            return
        self.refusal = f"{reason}; interrupted: {', '.join(sorted(self.interrupted[-1]))}"
        self.heard.set()

    def over(self, what: Followed) -> None:
        super().over(what)
        self.heard.set()


def told(asking: Asking) -> str | None:
    """Return what is told when the product needs the right, None where it was let.

    Raises:
        LookupError: if nothing needs it: then it is not to be given.
    """
    right = asking.right
    if right.verb in ("list", "watch"):
        return _followed(asking)
    return _CALLS[right.process, _manner(right)](asking)


def _manner(right: Right) -> str:
    """Return how a process comes to call *right*: the key of the table of calls."""
    if right.resource in ("secrets", "leases", "events") or right.group == REGISTRATIONS:
        return right.resource
    if right.names == (CONFIG_MAP,):
        return CONFIG_MAP
    if right.resource in ORIGINS:
        return f"{right.verb} what is referred to"
    return right.verb


def _followed(asking: Asking) -> str | None:
    """Follow what the right is about as the process does."""
    heard, right = _Heard(), asking.right
    if right.names == (CONFIG_MAP,):
        with followed_learnt(asking.client, namespace=NAMESPACE, outages=heard):
            assert heard.heard.wait(ANSWER_SECONDS), "no answer"
        return heard.refusal
    watch = Watch(asking.client, _resource(right), changed=lambda _: None, outages=heard)
    watch.start()
    assert heard.heard.wait(ANSWER_SECONDS), "no answer"
    watch.stop()
    return heard.refusal


def _resource(right: Right) -> Resource:
    if right.process == "agent":
        return {"pods": resource_of(NODE)}[right.resource]
    if right.names:
        place = (
            f"/api/v1/namespaces/{NAMESPACE}" if right.group == "" else f"/apis/{right.group}/v1"
        )
        path = f"{place}/{right.resource}"
        return Resource(path=path, cut=cut_version, metadata_only=True, name=right.names[0])
    if right.process == "serve":
        return {"nodes": NODES, "namespaces": NAMESPACES}[right.kind]
    return followed_by_controller()[right.kind]


def followed_by_controller() -> Mapping[str, Resource]:
    """Return what the controller follows, by its kind."""
    found = {"pods": PODS, "nodes": NODES, "namespaces": NAMESPACES}
    for version, kinds in TRACKED.items():
        for kind in kinds:
            plural = f"{kind.lower()}s"
            path = f"{root_of(version)}/{plural}"
            found[f"{plural}.{version.partition('/')[0]}"] = tracked_resource(version, kind, path)
    for follow in Queue(cast("Any", None)).follows:
        group, plural = follow.versions[0].partition("/")[0], f"{follow.kind.lower()}s"
        path = f"{root_of(follow.versions[0])}/{plural}"
        found[f"{plural}.{group}"] = Resource(path=path, cut=lambda _: None, in_namespaces=True)
    return found


def read_by_controller() -> set[str]:
    """Return what duties read whole: what they follow and act on, and whom a pod may belong to."""
    followed = {
        f"{kind.lower()}s.{version.partition('/')[0]}"
        for version, kinds in TRACKED.items()
        for kind in kinds
    }
    return followed | {"pods", "workloads.kueue.x-k8s.io"} | OWNERS


def _referred(asking: Asking) -> str | None:
    """Ask for what a job refers to; that it is not there is an answer."""
    reference = Reference(origin=ORIGINS[asking.right.resource], name="absent")
    found = ReferredObjects(asking.client).fetch(reference, namespace="default")
    return found.problem if "may not be read" in found.problem else None


def _kept(asking: Asking) -> str | None:
    """Take a turn of the keeper of certificates, on what the chart made."""
    found: dict[CertificateProblem, str] = {}
    settings = CertificateSettings(
        secret=SecretPlace(namespace=NAMESPACE, name=SECRET), webhooks=CONFIGURATIONS
    )
    asking.made(asking.right)
    with capture_logs() as lines:
        Keeper(ClusterObjects(asking.client), settings, tell=Telling()).turn()
    for line in lines:
        if line["event"] == "certificate problem":
            found[CertificateProblem(line["problem"])] = line["reason"]
    forbidden = (CertificateProblem.SECRET_FORBIDDEN, CertificateProblem.WEBHOOK_FORBIDDEN)
    return next((f"{each}: {found[each]}" for each in forbidden if each in found), None)


def _read(asking: Asking) -> str | None:
    """Read an object as a duty does before it acts, or on its way to whom a pod belongs."""
    if asking.right.kind not in read_by_controller():
        raise LookupError(f"nobody reads a single one of {asking.right.kind}")
    obj = asking.made(asking.right)
    objects = WritableObjects(asking.client)
    nothing = cast("Any", None)
    judges = Judges(
        objects=objects,
        discovery=Discovery(objects),
        pool=nothing,
        judging=nothing,
        mutating=nothing,
        policies=nothing,
    )
    try:
        assert asyncio.run(judges.read(ref_of(obj))) is not None
    except ClusterError as error:
        return _forbidden(error)
    return None


def _written(asking: Asking) -> str | None:
    """Note something on an object, as after a death, or in its status."""
    obj = asking.made(asking.right)
    subresource = asking.right.resource.partition("/")[2]
    changes: Json = {"metadata": {"annotations": {"vramgate.dev/checked": "true"}}}
    return _acted(asking, obj, Merge(on=ref_of(obj), changes=changes, subresource=subresource))


def _deleted(asking: Asking) -> str | None:
    obj = asking.made(asking.right)
    return _acted(asking, obj, Remove(on=ref_of(obj)))


def _said(asking: Asking) -> str | None:
    """Tell an Event about an object."""
    return _acted(asking, asking.made(asking.right))


def _acted(asking: Asking, obj: Json, *writes: Write) -> str | None:
    """Carry out an act; what is refused has a line, and is an outcome that is counted."""
    objects = WritableObjects(asking.client)
    tell = Tell(about=ref_of(obj), reason=Reason.OUT_OF_MEMORY, note="", cause=str(asking.right))
    with capture_logs() as lines:
        outcome = Acting(objects, Discovery(objects)).act(Act(tell=tell, writes=writes))
    if outcome is Outcome.REFUSED:
        return f"act failed: {lines[-1]['said']}; outcome: {outcome}"
    assert outcome is Outcome.DONE, lines
    return None


def _learnt(asking: Asking) -> str | None:
    """Keep a death for the jobs that come."""
    now = datetime.now(UTC)
    floor = Floor(container="train", nbytes=1 << 30, gave=1 << 30, card="", when=now.isoformat())
    death = Death(namespace="a", names=(str(asking.right),), fingerprint="", floor=floor)
    try:
        Learning(WritableObjects(asking.client), namespace=NAMESPACE).learn(death)
    except ClusterError as error:
        return _forbidden(error)
    return None


def _held(asking: Asking) -> str | None:
    """Take the Lease, which nobody holds."""
    lease = asking.made(asking.right)
    candidate = Lease(
        ClusterObjects(asking.client),
        namespace=lease["metadata"]["namespace"],
        name=lease["metadata"]["name"],
        identity="a",
        seconds=15,
    )
    with capture_logs() as lines:
        if candidate.turn():
            return None
    return f"lease not asked: {lines[-1]['reason']}"


def _annotated(asking: Asking) -> str | None:
    """Write a peak on a pod, as the agent does."""
    metadata = asking.made(asking.right)["metadata"]
    pod = Pod(uid=metadata["uid"], namespace=metadata["namespace"], name=metadata["name"])
    writer = Writer(ClusterObjects(asking.client))
    writer.give([Note(pod=pod, peaks={})])
    writer.start()
    writer.stop(ANSWER_SECONDS)
    return writer.problems().get(AgentProblem.ANNOTATION_FORBIDDEN)


def _forbidden(error: ClusterError) -> str:
    if error.status != 403:
        raise error
    return str(error)


_CALLS: Mapping[tuple[str, str], Callable[[Asking], str | None]] = {
    ("serve", "get what is referred to"): _referred,
    ("serve", "secrets"): _kept,
    ("serve", "validatingwebhookconfigurations"): _kept,
    ("serve", "mutatingwebhookconfigurations"): _kept,
    ("controller", "get what is referred to"): _referred,
    ("controller", "get"): _read,
    ("controller", "patch"): _written,
    ("controller", "delete"): _deleted,
    ("controller", "events"): _said,
    ("controller", "leases"): _held,
    ("controller", CONFIG_MAP): _learnt,
    ("agent", "patch"): _annotated,
}
