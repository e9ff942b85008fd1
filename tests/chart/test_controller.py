"""The controller as the chart installs it: off unless asked for, confined, with its rights."""

from __future__ import annotations

import pytest

from admission.config import parse_settings
from admission.controller.tracked import TRACKED
from tests.chart.rendering import NAMESPACE, Document, Values, all_of_kind, documents, of_kind
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

NAME = "vramgate-controller"
ENABLED: Values = {"controller": {"enabled": True}}
ALL: Values = {
    "controller": {
        "enabled": True,
        "replicas": 2,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
    },
    "networkPolicy": {"enabled": True, "metricsFrom": [{"podSelector": {}}]},
    "metrics": {"podMonitor": {"enabled": True}},
    "image": {"pullSecrets": [{"name": "pull"}]},
}


def own(found: tuple[Document, ...]) -> dict[str, Document]:
    """Return the controller's objects by their kinds."""
    return {each["kind"]: each for each in found if each["metadata"]["name"] == NAME}


def test_controller_is_a_choice() -> None:
    """Nothing of it is there unless it is asked for."""
    assert own(documents()) == {}
    assert "controller" not in of_kind(documents(), "ConfigMap")["data"]["settings.yaml"]
    assert sorted(own(documents(ENABLED))) == [
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
        "Lease",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    ]
    assert {"NetworkPolicy", "PodMonitor"} < own(documents(ALL)).keys()


def test_controller_is_confined() -> None:
    """No root, no capability, nothing to write on but a folder for temporary files."""
    pod = own(documents(ENABLED))["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["args"][0] == "controller"


def test_settings_are_those_of_the_webhook_with_the_controllers_port() -> None:
    """It judges by the webhook's policy: one file for both, and pods made anew when it changes."""
    values: Values = {
        "controller": {"enabled": True, "port": 9090},
        "config": {"policy": {"mode": "enforce"}, "controller": {"moves": ["dead", "pending"]}},
    }
    (file,) = (each for each in all_of_kind(documents(values), "ConfigMap") if "data" in each)
    settings = parse_settings(file["data"]["settings.yaml"])

    assert settings.controller.port == 9090
    assert [each.value for each in settings.controller.moves] == ["dead", "pending"]
    assert checksum(values) != checksum(ENABLED)
    assert checksum({**ENABLED, "config": {"agent": {"annotate": False}}}) == checksum(ENABLED)


def checksum(values: Values) -> str:
    """Return what makes the controller's pods anew when it changes."""
    metadata = own(documents(values))["Deployment"]["spec"]["template"]["metadata"]
    return str(metadata["annotations"]["vramgate.dev/settings-checksum"])


def test_every_kind_that_is_followed_may_be() -> None:
    """A kind that was added and not granted would be followed in vain, in every cluster."""
    rules = own(documents(ENABLED))["ClusterRole"]["rules"]
    granted = {
        (group, plural)
        for rule in rules
        for group in rule["apiGroups"]
        for plural in rule["resources"]
        if {"get", "list", "watch", "patch"} <= set(rule["verbs"])
    }
    followed = {
        (version.rpartition("/")[0], f"{kind.lower()}s")
        for version, kinds in TRACKED.items()
        for kind in kinds
    }

    assert followed - granted == set()


def test_no_right_reaches_secrets_or_whole_kinds() -> None:
    """No wildcard, no Secret, nothing of roles or webhooks."""
    for kind in ("ClusterRole", "Role"):
        for rule in own(documents(ALL))[kind]["rules"]:
            assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
            assert "secrets" not in rule["resources"]
            assert "rbac.authorization.k8s.io" not in rule["apiGroups"]


def test_without_kueue_there_is_no_right_to_its_objects() -> None:
    """Settings that switch it off take the rights away too."""
    values: Values = {**ENABLED, "config": {"controller": {"kueue": False}}}
    rules = own(documents(values))["ClusterRole"]["rules"]

    assert not any("kueue.x-k8s.io" in rule["apiGroups"] for rule in rules)


def test_the_lease_of_the_settings_is_the_one_that_may_be_held() -> None:
    """By name."""
    values: Values = {**ENABLED, "config": {"controller": {"leaseName": "other"}}}
    rules = own(documents(values))["Role"]["rules"]

    assert {"resourceNames": ["other"]}.items() <= rules[0].items()
    (lease,) = all_of_kind(documents(values), "Lease")
    assert lease["metadata"]["name"] == "other"
    assert not any("create" in rule["verbs"] for rule in rules)
    assert own(documents(values))["Role"]["metadata"]["namespace"] == NAMESPACE


@pytest.mark.parametrize("values", [ENABLED, ALL], ids=["enabled", "all"])
def test_every_rendered_object_is_accepted(api: ApiServer, values: Values) -> None:
    """No unknown field."""
    for document in own(documents(values)).values():
        answer = api.create(document, dry_run=True, strict=True)
        assert (answer.status, answer.warnings) == (201, ()), answer.message
