"""What a real API server says to what the chart renders: objects, rights, both failure policies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.chart.generating import INSTALL
from tests.chart.rendering import NAMESPACE, Document, Values, documents, parsed
from tests.chart.samples import JOB, POD, Sample, cpu_template, gpu_template, template
from tests.e2e.cluster import ControlPlane
from tests.e2e.processes import free_ports, poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.webhook import KINDS, calling

pytestmark = pytest.mark.e2e

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:vramgate"
SECRET = "vramgate-certificates"
CLOSED, OPEN = "closed", "open"

UNCOUNTED: tuple[Document, ...] = (
    {"metadata": {"annotations": {"gpu-fraction": "0.5"}}, **template()},
    {"metadata": {"annotations": {"gpu-memory": "2000"}}, **template()},
    template(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}]),
    template({"limits": {"nvidia.com/gpumem": 3000}}),
    template({"limits": {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 1}}),
)
"""Pods that count no `nvidia.com/gpu`, and get GPUs all the same."""

VALUES: dict[str, Values] = {
    "default": {},
    "cert-manager": {"certificates": {"mode": "certManager"}},
    "files": {"certificates": {"mode": "files", "secretName": "mine", "caBundle": "QUJD"}},
    "everything": {
        "webhooks": {
            "failClosed": True,
            "namespaceExpressions": [{"key": "team", "operator": "Exists"}],
            "extraKinds": [{"apiGroup": "example.com", "resource": "trainings"}],
        },
        "networkPolicy": {"enabled": True, "metricsFrom": [{"podSelector": {}}]},
        "metrics": {
            "podMonitor": {"enabled": True},
            "serviceMonitor": {"enabled": True},
            "rules": {"enabled": True},
            "dashboards": {"enabled": True},
        },
        "config": {"metrics": {"workloads": 20}},
        "hostNetwork": True,
        "replicas": 3,
        "podDisruptionBudget": {"minAvailable": "50%"},
        "affinity": {"podAntiAffinity": {}},
        "tolerations": [{"operator": "Exists"}],
        "extraVolumes": [{"name": "a", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "a", "mountPath": "/a"}],
        "extraEnvironment": [{"name": "A", "value": "b"}],
        "image": {"pullSecrets": [{"name": "pull"}]},
        "serviceAccount": {"annotations": {"a": "b"}},
        "service": {"annotations": {"a": "b"}},
    },
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_every_rendered_object_is_accepted(api: ApiServer, values: Values) -> None:
    """No unknown field, no value out of place, and every condition compiles."""
    for document in documents(values, release="trial"):
        answer = api.create(document, dry_run=True, strict=True)
        assert (answer.status, answer.warnings) == (201, ()), answer.message


def test_pods_meet_the_restricted_standard(api: ApiServer) -> None:
    """The namespace of install.yaml refuses anything less, and our pods pass."""
    found = parsed(INSTALL.read_text())
    (namespace,) = (each for each in found if each["kind"] == "Namespace")
    (deployment,) = (each for each in found if each["kind"] == "Deployment")
    restricted = {**namespace, "metadata": {**namespace["metadata"], "name": "restricted"}}
    assert api.create(restricted).status == 201
    account: Document = {"apiVersion": "v1", "kind": "ServiceAccount"}
    assert api.create({**account, "metadata": _in("restricted", "vramgate")}).status == 201
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _in("restricted", "one"),
        "spec": deployment["spec"]["template"]["spec"],
    }

    answer = api.create(pod, dry_run=True)
    unconfined = {**pod["spec"], "securityContext": {}}
    refused = api.create({**pod, "spec": unconfined}, dry_run=True)

    assert answer.status == 201, answer.message
    assert refused.status == 403
    assert "PodSecurity" in refused.message


@pytest.fixture(scope="module")
def installed(api: ApiServer) -> None:
    """Give the service account its rights."""
    for document in documents():
        if "Role" in document["kind"]:
            answer = api.create(document)
            assert answer.status == 201, answer.message


def _may(verb: str, resource: str, **attributes: str) -> Document:
    return {"verb": verb, "resource": resource, **attributes}


REGISTRATION = {"group": "admissionregistration.k8s.io", "name": "vramgate"}
NEEDED = [
    _may("list", "nodes"),
    _may("watch", "nodes"),
    _may("list", "namespaces"),
    _may("watch", "namespaces"),
    _may("get", "configmaps", namespace="any", name="any"),
    _may("get", "resourceclaims", group="resource.k8s.io", namespace="any", name="any"),
    _may("get", "resourceclaimtemplates", group="resource.k8s.io", namespace="any", name="any"),
    _may("get", "trainingruntimes", group="trainer.kubeflow.org", namespace="any", name="any"),
    _may("get", "clustertrainingruntimes", group="trainer.kubeflow.org", name="any"),
    *(
        _may(verb, resource, **REGISTRATION)
        for verb in ("get", "patch")
        for resource in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
    ),
    *(_may(verb, "secrets", namespace=NAMESPACE, name=SECRET) for verb in ("get", "patch")),
]
WITHHELD = [
    _may("get", "secrets", namespace=NAMESPACE, name="another"),
    _may("get", "secrets", namespace="any", name=SECRET),
    _may("list", "secrets", namespace=NAMESPACE),
    _may("create", "secrets", namespace=NAMESPACE),
    _may("delete", "secrets", namespace=NAMESPACE, name=SECRET),
    _may("list", "configmaps", namespace="any"),
    _may("update", "configmaps", namespace="any", name="any"),
    _may("get", "pods", namespace="any", name="any"),
    _may("patch", "nodes", name="any"),
    _may("create", "validatingwebhookconfigurations", group=REGISTRATION["group"]),
    _may("list", "validatingwebhookconfigurations", group=REGISTRATION["group"]),
    _may("delete", "validatingwebhookconfigurations", **REGISTRATION),
    _may("patch", "validatingwebhookconfigurations", **{**REGISTRATION, "name": "another"}),
]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("attributes", "expected"),
    [(each, True) for each in NEEDED] + [(each, False) for each in WITHHELD],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else "",
)
def test_service_account_may_do_what_it_needs_and_no_more(
    api: ApiServer, attributes: Document, expected: bool
) -> None:
    """Whoever takes the webhook over can read no Secret of a tenant and change no other webhook."""
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {
            "user": ACCOUNT,
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": attributes,
        },
    }

    assert api.create(review).body["status"]["allowed"] is expected


@pytest.fixture(scope="module")
def nobody(plane: ControlPlane, api: ApiServer) -> Iterator[None]:
    """Register both pairs of configurations, with nobody there to answer."""
    for name, labels in ((CLOSED, {"vramgate.dev/fail": "closed"}), (OPEN, {})):
        answer = api.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        )
        assert answer.status == 201, answer.message
    url = f"https://127.0.0.1:{free_ports(1)[0]}"
    made = []
    for document in documents({"webhooks": {"failClosed": True}}):
        if document["kind"] in KINDS:
            # Beside the recorder's registration, which has the same names.
            metadata = {**document["metadata"], "name": f"nobody-{document['metadata']['name']}"}
            document = calling(
                {**document, "metadata": metadata}, url=url, ca_bundle=plane.authority.pem
            )
            answer = api.create(document)
            assert answer.status == 201, answer.message
            made.append(document)
    for sample in (JOB, POD):
        poll_until(
            partial(_is_refused, api, sample), what="a service account, and a refusal of nobody's"
        )
    poll_until(lambda: _tried(api, OPEN, cpu_template(), POD) == 201, what="a service account")
    yield
    for document in made:
        api.delete(document)
    poll_until(
        partial(_is_gone, api, made[-1]), what="the end of the registration that nobody answers"
    )


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("sample", [JOB, POD], ids=["Job", "Pod"])
@pytest.mark.parametrize(
    ("namespace", "pod", "expected"),
    [
        (OPEN, gpu_template(), 201),
        (OPEN, cpu_template(), 201),
        (CLOSED, gpu_template(), 500),
        (CLOSED, cpu_template(), 201),
        *((CLOSED, pod, 500) for pod in UNCOUNTED),
        *((OPEN, pod, 201) for pod in UNCOUNTED),
    ],
)
def test_without_vramgate_only_closed_namespaces_refuse_gpu_jobs(
    api: ApiServer, namespace: str, pod: Document, expected: int, sample: Sample
) -> None:
    """Fail open is the rule; a namespace may ask for the other, and gets it for GPU jobs alone."""
    assert _tried(api, namespace, pod, sample) == expected


def _tried(api: ApiServer, namespace: str, pod: Document, sample: Sample = JOB) -> int:
    return api.create(sample.made(pod, namespace=namespace), dry_run=True).status


def _is_refused(api: ApiServer, sample: Sample) -> bool:
    return _tried(api, CLOSED, gpu_template(), sample) == 500


def _is_gone(api: ApiServer, document: Document) -> bool:
    return api.get(document).status == 404


def _in(namespace: str, name: str) -> dict[str, str]:
    return {"namespace": namespace, "name": name}
