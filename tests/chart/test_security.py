"""Our pods before the API server's own Pod Security admission, and what may reach them."""

from __future__ import annotations

import pytest

from tests.chart.rendering import Document, Values, all_of_kind, documents
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

ALL: Values = {
    "controller": {"enabled": True},
    "agent": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "webhooks": {"failClosed": True},
}
LEVELS = ("restricted", "baseline")


@pytest.fixture(scope="module")
def guarded(api: ApiServer) -> ApiServer:
    """Have a namespace a level of the standard, with the accounts that pods name."""
    for level in LEVELS:
        labels = {"pod-security.kubernetes.io/enforce": level}
        metadata = {"name": f"guarded-{level}", "labels": labels}
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        assert api.create(made).status == 201
        for account in all_of_kind(documents(ALL), "ServiceAccount"):
            place = {"name": account["metadata"]["name"], "namespace": f"guarded-{level}"}
            assert api.create({**account, "metadata": place}).status == 201
    return api


def pods() -> dict[str, Document]:
    """Return the pods of the chart by their component."""
    found = (*all_of_kind(documents(ALL), "Deployment"), *all_of_kind(documents(ALL), "DaemonSet"))
    return {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"]["template"]["spec"]
        for each in found
    }


def refusal(api: ApiServer, spec: Document, level: str) -> str:
    """Return what the API server says against a pod with *spec*, empty text if it takes it."""
    metadata = {"name": "one", "namespace": f"guarded-{level}"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    answer = api.create(pod, dry_run=True)
    assert answer.status in (201, 403), answer.message
    return answer.message


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_a_pod_meets_the_restricted_standard(guarded: ApiServer, component: str) -> None:
    """And would not without its security context."""
    spec = pods()[component]

    assert refusal(guarded, spec, "restricted") == ""
    assert "PodSecurity" in refusal(guarded, {**spec, "securityContext": {}}, "restricted")


def test_the_agent_breaks_the_standard_by_hostpid_alone(guarded: ApiServer) -> None:
    """Of either level: without that it would be a restricted pod."""
    spec = pods()["agent"]
    without = {key: value for key, value in spec.items() if key != "hostPID"}

    for level in LEVELS:
        assert refusal(guarded, spec, level).endswith("host namespaces (hostPID=true)")
    assert refusal(guarded, without, "restricted") == ""


def test_every_pod_has_a_network_policy_that_names_its_ports() -> None:
    """In: its own ports and no others; out: DNS and what the values say."""
    policies = {
        each["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: each["spec"]
        for each in all_of_kind(documents(ALL), "NetworkPolicy")
    }

    assert policies.keys() == pods().keys()
    for component, spec in pods().items():
        policy = policies[component]
        (container,) = spec["containers"]
        served = {each["name"] for each in container["ports"]}
        taken = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        assert taken == served
        (egress,) = policy["egress"]
        assert {port["port"] for port in egress["ports"]} == {53, 443, 6443}


def test_no_pod_runs_a_shell() -> None:
    """The image has none: probes ask by HTTP, and hooks start a program that is there."""
    for spec in pods().values():
        (container,) = spec["containers"]
        assert "command" not in container
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert "httpGet" in container[probe]
        hook = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
        assert hook in (None, ["sleep", "5"])
