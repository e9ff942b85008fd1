"""The node agent as the chart installs it: what it may see, and the little it may change."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from admission.agent.running import NODE_NAME
from admission.config import parse_settings
from tests.chart.rendering import (
    NAMESPACE,
    Document,
    RenderError,
    Values,
    documents,
    of_kind,
)
from tests.e2e.cluster import ControlPlane
from tests.e2e.processes import poll_until
from tests.e2e.rest import Answer, ApiServer

pytestmark = pytest.mark.e2e

NAME = "vramgate-agent"
ENABLED: Values = {"agent": {"enabled": True}}
ALL: Values = {
    "agent": {
        "enabled": True,
        "runtimeClassName": "nvidia",
        "priorityClassName": "system-node-critical",
        "nodeSelector": {"a": "b"},
        "affinity": {"podAntiAffinity": {}},
    },
    "networkPolicy": {"enabled": True, "metricsFrom": [{"podSelector": {}}]},
    "metrics": {"podMonitor": {"enabled": True}},
    "image": {"pullSecrets": [{"name": "pull"}]},
}
PEAKS = {"metadata": {"annotations": {"vramgate.dev/peak-bytes": "{}"}}}


def own(found: tuple[Document, ...]) -> dict[str, Document]:
    """Return the agent's objects by their kinds."""
    return {each["kind"]: each for each in found if each["metadata"]["name"] == NAME}


def pod_of(values: Values) -> Document:
    """Return the pod spec of the DaemonSet."""
    spec: Document = of_kind(documents(values), "DaemonSet")["spec"]["template"]["spec"]
    return spec


def test_agent_is_a_choice() -> None:
    """Nothing of it is there unless it is asked for."""
    assert own(documents()) == {}
    assert "agent" not in of_kind(documents(), "ConfigMap")["data"]["settings.yaml"]
    assert sorted(own(documents(ENABLED))) == [
        "ClusterRole",
        "ClusterRoleBinding",
        "DaemonSet",
        "ServiceAccount",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]
    assert {"NetworkPolicy", "PodMonitor"} < own(documents(ALL)).keys()


def test_agent_sees_the_processes_of_the_host_and_is_confined_else() -> None:
    """No root, no capability, nothing to write on, no path of the host."""
    pod = pod_of(ENABLED)
    (container,) = pod["containers"]

    assert pod["hostPID"] is True
    assert not {"hostNetwork", "hostIPC"} & pod.keys()
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert [each.keys() - {"name"} for each in pod["volumes"]] == [{"configMap"}]


def test_agent_goes_to_gpu_nodes_with_the_driver() -> None:
    """By the label of GPU feature discovery, past the taint that keeps others away."""
    pod = pod_of(ENABLED)
    (container,) = pod["containers"]
    environment = {each["name"]: each for each in container["env"]}
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert environment["NVIDIA_VISIBLE_DEVICES"]["value"] == "all"
    assert environment["NVIDIA_DRIVER_CAPABILITIES"]["value"] == "utility"
    assert environment[NODE_NAME]["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert terms["nodeSelectorTerms"][0]["matchExpressions"][0]["key"] == "nvidia.com/gpu.present"
    assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert pod_of(ALL)["runtimeClassName"] == "nvidia"
    assert "runtimeClassName" not in pod


def test_settings_are_those_of_the_webhook_with_the_agents_port() -> None:
    """One file for both; what the agent reads at its start makes its pods anew, and only that."""
    agent: dict[str, Any] = {"enabled": True, "port": 9}
    config = {"config": {"agent": {"intervalSeconds": 2.5}}, "agent": agent}
    with pytest.raises(RenderError, match="/agent/port"):
        documents(config)
    agent["port"] = 9090
    settings = parse_settings(of_kind(documents(config), "ConfigMap")["data"]["settings.yaml"])

    assert (settings.agent.port, settings.agent.interval_seconds) == (9090, 2.5)
    assert checksum(config) != checksum(ENABLED)
    assert checksum({**ENABLED, "config": {"policy": {"mode": "enforce"}}}) == checksum(ENABLED)


def checksum(values: Values) -> str:
    """Return what makes the agent's pods anew when it changes."""
    metadata = of_kind(documents(values), "DaemonSet")["spec"]["template"]["metadata"]
    return str(metadata["annotations"]["vramgate.dev/settings-checksum"])


def test_agent_may_have_an_image_of_its_own() -> None:
    """It needs no framework."""
    image = {"repository": "vramgate-base", "tag": "1"}
    (container,) = pod_of({"agent": {"enabled": True, "image": image}})["containers"]
    (shared,) = pod_of({**ENABLED, "image": {"tag": "2"}})["containers"]

    assert container["image"] == "vramgate-base:1"
    assert shared["image"] == "vramgate:2"


def test_without_annotations_there_is_no_right_to_write() -> None:
    """Metrics alone need none."""
    values = {**ENABLED, "config": {"agent": {"annotate": False}}}
    (rule,) = own(documents(values))["ClusterRole"]["rules"]

    assert rule["verbs"] == ["list", "watch"]


def test_peaks_keep_the_names_of_the_job() -> None:
    """Prometheus would else rename them to `exported_namespace` and so on."""
    (endpoint,) = own(documents(ALL))["PodMonitor"]["spec"]["podMetricsEndpoints"]

    assert endpoint["honorLabels"] is True


@pytest.mark.parametrize("values", [ENABLED, ALL], ids=["enabled", "all"])
def test_every_rendered_object_is_accepted(api: ApiServer, values: Values) -> None:
    """No unknown field, and every expression compiles."""
    for document in own(documents(values)).values():
        answer = api.create(document, dry_run=True, strict=True)
        assert (answer.status, answer.warnings) == (201, ()), answer.message


def test_namespace_that_the_chart_makes_lets_the_agent_in() -> None:
    """hostPID is beyond the restricted standard."""
    label = "pod-security.kubernetes.io/enforce"
    made = of_kind(documents({**ENABLED, "createNamespace": True}), "Namespace")

    assert label not in made["metadata"]["labels"]
    assert label in of_kind(documents({"createNamespace": True}), "Namespace")["metadata"]["labels"]


@pytest.fixture(scope="module")
def nodes_pods(api: ApiServer) -> Iterator[dict[str, Document]]:
    """Install the agent's rights, and an agent's pod and a job's on each of two nodes."""
    made: list[Document] = []
    for kind, document in own(documents(ENABLED)).items():
        if kind != "DaemonSet":
            answer = api.create(document)
            assert answer.status == 201, answer.message
            made.append(document)
    pods = {
        f"{name}-{node}": _pod(f"{name}-{node}", node=node, account=account)
        for node in ("one", "two")
        for name, account in (("agent", NAME), ("job", "default"))
    }
    found = {}
    for name, document in pods.items():
        answer = api.create(document)
        assert answer.status == 201, answer.message
        found[name] = dict(answer.body)
    yield found
    for document in pods.values():
        api.delete(document, grace_seconds=0)
    for document in made:
        api.delete(document)


def _pod(name: str, *, node: str, account: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "labels": {"a": "b"},
            "annotations": {"c": "d"},
        },
        "spec": {
            "nodeName": node,
            "serviceAccountName": account,
            "containers": [{"name": "main", "image": "example.com/a:1"}],
        },
    }


@pytest.fixture(scope="module")
def agent(
    plane: ControlPlane, api: ApiServer, nodes_pods: dict[str, Document]
) -> Iterator[ApiServer]:
    """Talk to the API server as the agent of node one does, once its policy is at work."""
    account = own(documents(ENABLED))["ServiceAccount"]
    token = api.token(account, pod=nodes_pods["agent-one"])
    made = ApiServer(dataclasses.replace(plane.credentials, token=token))
    change = {"metadata": {"labels": {"tried": "yes"}}}
    poll_until(
        lambda: made.patch(nodes_pods["job-one"], change, dry_run=True).status == 422,
        what="the policy of the agent",
    )
    yield made
    made.close()


def test_agent_may_list_the_pods_and_write_peaks_on_its_own(
    agent: ApiServer, nodes_pods: dict[str, Document]
) -> None:
    """Of its own node's pods."""
    selector = {"fieldSelector": "spec.nodeName=one"}
    listed = agent.read("/api/v1/pods", **selector)

    assert {each["metadata"]["name"] for each in listed.body["items"]} == {"agent-one", "job-one"}
    assert patched(agent, nodes_pods["job-one"], PEAKS).status == 200


def test_agent_may_not_write_on_the_pods_of_other_nodes(
    agent: ApiServer, nodes_pods: dict[str, Document]
) -> None:
    """Its token says where it is."""
    answer = patched(agent, nodes_pods["job-two"], PEAKS)

    assert answer.status == 422
    assert "pods of its own node alone" in answer.message


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"activeDeadlineSeconds": 1}},
        {"metadata": {"labels": {"a": "c"}}},
        {"metadata": {"labels": {"new": "c"}}},
        {"metadata": {"annotations": {"c": None}}},
        {"metadata": {"annotations": {"c": "e"}}},
        {"metadata": {"annotations": {"vramgate.dev/estimate-bytes": "1"}}},
        {"metadata": {"finalizers": ["example.com/stay"]}},
    ],
    ids=str,
)
def test_agent_may_change_nothing_else_of_a_pod(
    agent: ApiServer, nodes_pods: dict[str, Document], change: Document
) -> None:
    """Neither what it is nor who it belongs to."""
    answer = patched(agent, nodes_pods["job-one"], change)

    assert answer.status == 422
    assert "its own annotation and nothing else" in answer.message


def test_agent_may_not_change_an_image(
    api: ApiServer, agent: ApiServer, nodes_pods: dict[str, Document]
) -> None:
    """Which whoever may patch a pod may else do, and so run what they like as anybody."""
    pod = nodes_pods["job-one"]
    (container,) = pod["spec"]["containers"]
    change = {"spec": {"containers": [{**container, "image": "example.com/another:1"}]}}

    answer = patched(agent, pod, change)

    assert answer.status == 422
    assert "its own annotation and nothing else" in answer.message
    assert patched(api, pod, change).status == 200


def test_others_change_pods_as_before(api: ApiServer, nodes_pods: dict[str, Document]) -> None:
    """The policy is about agents alone."""
    change = {"metadata": {"labels": {"new": "c"}}}

    assert patched(api, nodes_pods["job-two"], change).status == 200


@pytest.mark.parametrize(
    ("verb", "resource"),
    [("get", "secrets"), ("list", "nodes"), ("create", "pods"), ("delete", "pods")],
)
def test_agent_has_no_other_right(
    api: ApiServer, nodes_pods: dict[str, Document], verb: str, resource: str
) -> None:
    """Neither to read a Secret nor to make a pod."""
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{NAME}",
            "resourceAttributes": {"verb": verb, "resource": resource, "namespace": NAMESPACE},
        },
    }

    assert api.create(review).body["status"]["allowed"] is False


def patched(server: ApiServer, pod: Document, change: Document) -> Answer:
    """Try a change of a pod."""
    return server.patch(pod, change, dry_run=True)
