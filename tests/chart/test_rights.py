"""Each right of each process, taken away on a real API server: what needs it is told, and only it.

The rights are those that the chart renders, so one that is added needs a call of the product and a
row of docs/security.md. Accounts are users that are impersonated: one an absent right.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from admission.cluster import Client, connect
from admission.values import Json
from tests.chart.definitions import definition
from tests.chart.needing import CONFIGURATIONS, SECRET, Asking, told
from tests.chart.rendering import NAMESPACE, REPOSITORY, Document, Values
from tests.chart.rights import RELEASE, VALUES, Right, rights, without
from tests.chart.samples import SAMPLES, template
from tests.e2e.cluster import ControlPlane
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

RIGHTS = rights()
UNREFERRED: Values = {**VALUES, "config": {"sources": {"configMaps": False}}}
"""Without the right to every ConfigMap, which would hide whether one by name is needed."""
DOCS = REPOSITORY / "docs" / "security.md"
ROW = re.compile(r"\| `(\S+)` \| `(\S+)` \| ([a-z, ]+) \| (.+) \| (.+) \|")
API = "rbac.authorization.k8s.io/v1"
NEVER_SERVED = "training.vramgate.invalid"
KINDS = {
    "jobs.batch": ("batch/v1", "Job"),
    "cronjobs.batch": ("batch/v1", "CronJob"),
    "pods": ("v1", "Pod"),
    "events": ("v1", "Pod"),
    "leases.coordination.k8s.io": ("coordination.k8s.io/v1", "Lease"),
    "deployments.apps": ("apps/v1", "Deployment"),
    "replicasets.apps": ("apps/v1", "ReplicaSet"),
    "statefulsets.apps": ("apps/v1", "StatefulSet"),
    "workloads.kueue.x-k8s.io": ("kueue.x-k8s.io/v1beta2", "Workload"),
    "admissionchecks.kueue.x-k8s.io": ("kueue.x-k8s.io/v1beta2", "AdmissionCheck"),
    "resourceflavors.kueue.x-k8s.io": ("kueue.x-k8s.io/v1beta2", "ResourceFlavor"),
    "clusterqueues.kueue.x-k8s.io": ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
    "mxjobs.kubeflow.org": ("kubeflow.org/v1", "MXJob"),
    "elasticjobs.elastic.pytorch.org": ("elastic.pytorch.org/v1alpha1", "ElasticJob"),
    "rayclusters.ray.io": ("ray.io/v1", "RayCluster"),
    **{
        f"{each.kind.lower()}s.{each.group}": (each.api_version, each.kind)
        for each in SAMPLES
        if each.group
    },
}
"""Kinds of objects, by their resource."""
_numbers = itertools.count()


@pytest.fixture(scope="module")
def served(api: ApiServer) -> ApiServer:
    """Have every kind that a right is about, and the objects that the chart makes."""
    kinds = sorted({KINDS[kind] for kind in map(_plain, RIGHTS) if kind in KINDS})
    missing = [(version, kind) for version, kind in kinds if not _is_served(api, version, kind)]
    for version, kind in missing:
        answer = api.create(_defined(version, kind))
        assert answer.status == 201, answer.message
    for version, kind in missing:
        poll_until(lambda v=version, k=kind: _is_served(api, v, k), what=f"{kind} to be served")  # type: ignore[misc]
    for document in _chart_objects():
        assert api.create(document).status in (201, 409)
    return api


@pytest.fixture(scope="module")
def accounts(plane: ControlPlane, served: ApiServer) -> Callable[[Right | None, str], Client]:
    """Return who makes a client of an account with all rights of a process but one."""
    users: dict[tuple[Right | None, str], str] = {}
    lacking = [(right, right.process) for right in RIGHTS]
    for right, process in [*lacking, *((None, each) for each in {r.process for r in RIGHTS})]:
        users[right, process] = _user(served, right, process)
    for (right, process), user in users.items():
        other = next(e for e in rights(UNREFERRED) if e.process == process and e != right)
        poll_until(lambda u=user, o=other: _may(served, u, o), what=f"rights of {user}")  # type: ignore[misc]

    def client(right: Right | None, process: str) -> Client:
        return _client(plane, users[right, process])

    return client


@pytest.mark.parametrize("right", RIGHTS, ids=str)
def test_a_right_is_needed_and_its_absence_is_told(
    served: ApiServer, accounts: Callable[[Right | None, str], Client], right: Right
) -> None:
    """With it the call is let; without it, and with all others, what is told names the refusal."""

    def made(of: Right) -> Json:
        return _made(served, of)

    with_it = told(Asking(client=accounts(None, right.process), right=right, made=made))
    without_it = told(Asking(client=accounts(right, right.process), right=right, made=made))

    assert with_it is None
    assert without_it is not None
    assert "403" in without_it or "may not be read: give Vramgate" in without_it


def test_every_right_has_a_row_with_its_reason() -> None:
    """And every row is a right that the chart gives."""
    rows = ROW.findall(Path(DOCS).read_text())
    documented = {
        (process, place, verb)
        for process, place, verbs, reason, told in rows
        for verb in verbs.split(", ")
    }

    assert documented == {(each.process, each.place, each.verb) for each in RIGHTS}


def _plain(right: Right) -> str:
    """Return the kind without its subresource: `jobs.batch`."""
    resource = right.resource.partition("/")[0]
    return f"{resource}.{right.group}" if right.group else resource


def _is_served(api: ApiServer, version: str, kind: str) -> bool:
    group = version.partition("/")[0]
    if group in ("v1", "apps", "batch", "coordination.k8s.io"):
        return True
    answer = api.get(definition(version, kind))
    found = answer.body.get("status", {}).get("conditions") if answer.status == 200 else ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in found or ())


def _defined(version: str, kind: str) -> Document:
    """Return the definition of *kind*, with a status of its own."""
    made = definition(version, kind)
    for each in made["spec"]["versions"]:
        each["subresources"] = {"status": {}}
    if kind in ("AdmissionCheck", "ResourceFlavor", "ClusterQueue"):
        made["spec"]["scope"] = "Cluster"
    return made


def _chart_objects() -> Iterator[Document]:
    """Return what the chart makes empty, and registrations that match nothing."""
    place = {"namespace": NAMESPACE}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": {**place, "name": SECRET}}
    learned = {**place, "name": "vramgate-learned"}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": learned}
    for name in CONFIGURATIONS:
        for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
            yield {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": name},
                "webhooks": [_webhook()],
            }


def _webhook() -> Document:
    rule = {
        "apiGroups": [NEVER_SERVED],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["nothings"],
    }
    return {
        "name": "nothing.vramgate.dev",
        "clientConfig": {"url": "https://localhost:1/validate"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def _made(api: ApiServer, right: Right) -> Json:
    """Return a new object of the kind of *right*; where it is about given ones, as at the start."""
    if right.process == "serve":
        for document in _chart_objects():
            if document["kind"] == "Secret":
                assert api.patch(document, {"data": None}).status == 200
            elif "webhooks" in document:
                assert api.patch(document, {"webhooks": document["webhooks"]}).status == 200
        return {}
    version, kind = KINDS[_plain(right)]
    namespace = NAMESPACE if right.role == "Role" else "default"
    name = right.names[0] if right.names else f"rights-{next(_numbers)}"
    metadata = {"namespace": namespace, "name": name}
    document = {
        "apiVersion": version,
        "kind": kind,
        "metadata": metadata,
        **_content(kind, version),
    }
    if right.names:
        api.delete(document)
    answer = api.create(document)
    assert answer.status == 201, answer.message
    return {**document, **answer.body}


def _content(kind: str, version: str) -> Document:
    """Return the least that the API server takes as an object of *kind*; nothing of it runs."""
    containers = template()["spec"]["containers"]
    pod = {"spec": {"containers": containers, "schedulerName": "nobody"}}
    labelled = {"metadata": {"labels": {"app": "a"}}, **pod}
    never = {"metadata": labelled["metadata"], "spec": {**pod["spec"], "restartPolicy": "Never"}}
    selector = {"matchLabels": {"app": "a"}}
    match kind, version:
        case "Pod", _:
            return pod
        case "Job", "batch/v1":
            return {"spec": {"suspend": True, "template": never}}
        case "CronJob", _:
            job = {"spec": {"template": never}}
            return {"spec": {"suspend": True, "schedule": "0 0 1 1 *", "jobTemplate": job}}
        case (("Deployment" | "ReplicaSet"), _):
            return {"spec": {"replicas": 0, "selector": selector, "template": labelled}}
        case "StatefulSet", _:
            spec = {"replicas": 0, "selector": selector, "template": labelled, "serviceName": "a"}
            return {"spec": spec}
        case "Lease", _:
            return {}
        case _:
            return {"spec": {}}


def _user(api: ApiServer, right: Right | None, process: str) -> str:
    """Return a new user with all rights of *process* but *right*."""
    name = f"{RELEASE}-{process}-{next(_numbers)}"
    values = UNREFERRED if right is not None and right.role == "Role" else VALUES
    for role in without(right, process=process, values=values):
        kind, metadata = role["kind"], {**role["metadata"], "name": name}
        binding = {
            "apiVersion": API,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": API.partition("/")[0], "kind": kind, "name": name},
            "subjects": [{"kind": "User", "apiGroup": API.partition("/")[0], "name": name}],
        }
        for document in ({**role, "metadata": metadata}, binding):
            answer = api.create(document)
            assert answer.status == 201, answer.message
    return name


def _client(plane: ControlPlane, user: str) -> Client:
    client = connect(plane.credentials.kubeconfig)
    client.set_default_header("Impersonate-User", user)
    client.set_default_header("Impersonate-Group", "system:authenticated")
    return client


def _may(api: ApiServer, user: str, right: Right) -> bool:
    attributes: dict[str, Any] = {"verb": right.verb, "group": right.group}
    resource, _, subresource = right.resource.partition("/")
    attributes |= {"resource": resource, "subresource": subresource}
    if right.role == "Role":
        attributes["namespace"] = NAMESPACE
    if right.names:
        attributes["name"] = right.names[0]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": [], "resourceAttributes": attributes},
    }
    return bool(api.create(review).body["status"]["allowed"])
