"""What the chart renders with its default values and with each switch."""

from __future__ import annotations

from typing import Any

import pytest

from admission.config import parse_settings
from admission.settings_file import at_work, changes
from tests.chart.rendering import (
    NAMESPACE,
    Document,
    Values,
    all_of_kind,
    documents,
    of_kind,
)

pytestmark = pytest.mark.e2e

CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def pod_of(found: tuple[Document, ...]) -> Document:
    """Return the pod spec of the Deployment."""
    spec: Document = of_kind(found, "Deployment")["spec"]["template"]["spec"]
    return spec


def settings_of(found: tuple[Document, ...]) -> str:
    """Return the settings file."""
    return str(of_kind(found, "ConfigMap")["data"]["settings.yaml"])


def webhooks_of(found: tuple[Document, ...]) -> list[Document]:
    """Return every webhook of every configuration."""
    return [
        webhook
        for kind in CONFIGURATIONS
        for document in all_of_kind(found, kind)
        for webhook in document["webhooks"]
    ]


def test_default_values_render_one_of_each_object() -> None:
    """Two replicas with certificates of their own: nothing else is needed, nothing else is made."""
    found = documents()

    assert sorted(document["kind"] for document in found) == [
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "Deployment",
        "MutatingWebhookConfiguration",
        "PodDisruptionBudget",
        "ResourceQuota",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "ValidatingWebhookConfiguration",
    ]
    assert of_kind(found, "Deployment")["spec"]["replicas"] == 2
    assert "data" not in of_kind(found, "Secret")


def test_pods_are_confined() -> None:
    """No root, no capabilities, no writable root file system."""
    pod = pod_of(documents())
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert container["resources"]["limits"].keys() == {"memory"}


def test_webhooks_fail_open_and_answer_in_time() -> None:
    """Without Vramgate jobs are admitted as if it had never been installed."""
    for webhook in webhooks_of(documents()):
        assert webhook["failurePolicy"] == "Ignore"
        assert webhook["timeoutSeconds"] == 5
        assert webhook["sideEffects"] == "None"
        assert webhook["matchPolicy"] == "Equivalent"
        is_mutating = webhook["clientConfig"]["service"]["path"] == "/mutate"
        assert webhook.get("reinvocationPolicy") == ("IfNeeded" if is_mutating else None)


def test_closed_namespaces_have_a_pair_of_their_own() -> None:
    """One namespace is in one pair: fail open, or fail closed where its label says so."""
    found = documents({"webhooks": {"failClosed": True}})
    label = "vramgate.dev/fail"

    for webhook in webhooks_of(found):
        (operator,) = [
            each["operator"]
            for each in webhook["namespaceSelector"]["matchExpressions"]
            if each["key"] == label
        ]
        assert (webhook["failurePolicy"], operator) in (("Fail", "In"), ("Ignore", "NotIn"))
    names = [document["metadata"]["name"] for document in all_of_kind(found, CONFIGURATIONS[0])]
    assert sorted(names) == ["vramgate", "vramgate-closed"]
    assert list(parse_settings(settings_of(found)).certificates.webhooks) == sorted(names)


def test_steering_can_be_left_out() -> None:
    """Then nothing is registered that may change a job."""
    found = documents({"webhooks": {"mutating": False}})

    assert not all_of_kind(found, "MutatingWebhookConfiguration")


def test_observed_kinds_can_be_left_out() -> None:
    """Then nothing that serves is sent."""
    names = {each["name"] for each in webhooks_of(documents({"webhooks": {"observe": False}}))}

    assert not {"served.vramgate.dev", "rayclusters.vramgate.dev"} & names


def test_kinds_of_the_settings_are_sent_whole() -> None:
    """Where their GPUs are, only the settings know."""
    kinds = [{"apiGroup": "example.com", "resource": "trainings"}]
    found = webhooks_of(documents({"webhooks": {"extraKinds": kinds}}))

    extra = [each for each in found if each["name"] == "extra.vramgate.dev"]
    assert [each["rules"][0]["resources"] for each in extra] == [["trainings"], ["trainings"]]
    assert [[one["name"] for one in each["matchConditions"]] for each in extra] == 2 * [
        ["not-being-deleted", "something-we-read-changed"]
    ]


def test_certificates_of_cert_manager_are_injected_and_mounted() -> None:
    """It fills the Secret and the configurations; we read files and have no right to write."""
    found = documents({"certificates": {"mode": "certManager"}})
    (certificate,) = (
        each["spec"] for each in all_of_kind(found, "Certificate") if "dnsNames" in each["spec"]
    )

    assert certificate["dnsNames"][0] == f"vramgate.{NAMESPACE}.svc"
    assert certificate["issuerRef"] == {"kind": "Issuer", "name": "vramgate"}
    for kind in CONFIGURATIONS:
        annotations = of_kind(found, kind)["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/vramgate"}
    volumes = {each["name"]: each for each in pod_of(found)["volumes"]}
    assert volumes["certificate"]["secret"]["secretName"] == certificate["secretName"]
    assert parse_settings(settings_of(found)).certificate_mode.value == "files"
    (rule,) = of_kind(found, "Role")["rules"]
    assert "patch" not in rule["verbs"]
    assert not all_of_kind(found, "Secret")


def test_an_issuer_of_the_cluster_may_sign() -> None:
    """Then none of our own is made."""
    issuer = {"kind": "ClusterIssuer", "name": "corporate"}
    found = documents(
        {"certificates": {"mode": "certManager", "certManager": {"issuerRef": issuer}}}
    )

    assert of_kind(found, "Certificate")["spec"]["issuerRef"] == issuer
    assert not all_of_kind(found, "Issuer")


def test_certificates_of_ones_own_are_mounted_and_trusted() -> None:
    """The CA goes into every webhook."""
    own = {"mode": "files", "secretName": "mine", "caBundle": "QUJD"}
    found = documents({"certificates": own})

    volumes = {each["name"]: each for each in pod_of(found)["volumes"]}
    assert volumes["certificate"]["secret"] == {"secretName": "mine"}
    assert {each["clientConfig"]["caBundle"] for each in webhooks_of(found)} == {"QUJD"}
    assert parse_settings(settings_of(found)).certificate_mode.value == "files"


@pytest.mark.parametrize(
    ("values", "rolls"),
    [
        ({"config": {"workers": {"maxConcurrent": 4}}}, True),
        ({"config": {"server": {"drainSeconds": 5}}}, True),
        ({"config": {"certificates": {"renewDays": 30}}}, True),
        ({"config": {"nodes": {"file": "/etc/nodes.yaml"}}}, True),
        ({"config": {"policy": {"mode": "enforce"}}}, False),
        ({"config": {"nodes": {"pools": [{"name": "spot", "product": "Tesla-T4"}]}}}, False),
        ({"replicas": 3}, False),
    ],
)
def test_pods_are_made_anew_for_what_is_read_at_the_start_alone(
    values: dict[str, Any], rolls: bool
) -> None:
    """The rest they take up while they run: nothing that is remembered is thrown away for it.

    The running process is asked what that is, so that neither forgets a setting of the other.
    """
    before, after = documents({}), documents(values)

    assert (checksum(before) != checksum(after)) is rolls
    running, found = (parse_settings(settings_of(each)) for each in (before, after))
    assert (changes(at_work(running, found), found) != ()) is rolls


def checksum(found: tuple[Document, ...]) -> str:
    """Return what rolls the pods when it changes."""
    metadata = of_kind(found, "Deployment")["spec"]["template"]["metadata"]
    return str(metadata["annotations"]["vramgate.dev/settings-checksum"])


def test_settings_are_those_of_the_values() -> None:
    """`config` reaches the process unchanged, large numbers and lists included."""
    config: dict[str, Any] = {
        "policy": {"mode": "enforce", "onUnknown": "deny"},
        "workers": {"memoryBytes": 4294967296, "timeoutSeconds": 1.5, "preload": []},
        "nodes": {"pools": [{"name": "spot", "product": "Tesla-T4", "labels": {"a/b": "c"}}]},
        "certificates": {"renewDays": 30},
    }
    settings = parse_settings(settings_of(documents({"config": config, "port": 9443})))

    assert settings.workers.memory_bytes == 4294967296
    assert settings.workers.preload == ()
    assert settings.nodes.pools[0].labels == {"a/b": "c"}
    assert settings.certificates.renew_days == 30
    assert (settings.server.port, settings.server.metrics_port) == (9443, 8080)
    assert settings.certificates.service.namespace == NAMESPACE


def test_rights_follow_the_settings() -> None:
    """Without ConfigMaps to read there is no right to read any."""
    values = {"config": {"sources": {"configMaps": False}}}
    resources = [
        resource
        for rule in of_kind(documents(values), "ClusterRole")["rules"]
        for resource in rule["resources"]
    ]

    assert "configmaps" not in resources


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"createNamespace": True}, "Namespace"),
        ({"networkPolicy": {"enabled": True}}, "NetworkPolicy"),
        ({"metrics": {"podMonitor": {"enabled": True}}}, "PodMonitor"),
        ({"metrics": {"serviceMonitor": {"enabled": True}}}, "ServiceMonitor"),
        ({"metrics": {"rules": {"enabled": True}}}, "PrometheusRule"),
    ],
)
def test_switch_adds_its_object(values: Values, kind: str) -> None:
    """And without it there is none."""
    assert all_of_kind(documents(values), kind)
    assert not all_of_kind(documents(), kind)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"podDisruptionBudget": {"enabled": False}}, "PodDisruptionBudget"),
        ({"replicas": 1}, "PodDisruptionBudget"),
        ({"priorityClassName": ""}, "ResourceQuota"),
        ({"serviceAccount": {"name": "mine"}}, "ServiceAccount"),
    ],
)
def test_switch_takes_its_object_away(values: Values, kind: str) -> None:
    """A budget for one replica would keep its node from being drained."""
    assert not all_of_kind(documents(values), kind)


def test_pods_may_be_placed_and_given_more() -> None:
    """What the values say of pods ends where Kubernetes reads it."""
    values: dict[str, Any] = {
        "hostNetwork": True,
        "nodeSelector": {"role": "infra"},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "affinity": {"podAffinity": {}},
        "podLabels": {"team": "platform"},
        "podAnnotations": {"a": "b"},
        "extraEnvironment": [{"name": "SSL_CERT_FILE", "value": "/ca/ca.crt"}],
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
        "topologySpreadConstraints": [{"topologyKey": "rack", "maxSkew": 1}],
        "image": {"digest": f"sha256:{'0' * 64}", "pullSecrets": [{"name": "pull"}]},
    }
    found = documents(values)
    pod = pod_of(found)
    (container,) = pod["containers"]

    assert pod["hostNetwork"] is True
    assert pod["nodeSelector"] == values["nodeSelector"]
    assert pod["tolerations"] == values["tolerations"]
    assert pod["affinity"] == values["affinity"]
    assert pod["topologySpreadConstraints"] == values["topologySpreadConstraints"]
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert container["image"].endswith("0" * 64)
    assert container["env"][1:] == values["extraEnvironment"]
    assert {"name": "ca", "mountPath": "/ca"} in container["volumeMounts"]
    metadata = of_kind(found, "Deployment")["spec"]["template"]["metadata"]
    assert metadata["labels"]["team"] == "platform"
    assert metadata["annotations"]["a"] == "b"


def test_release_of_another_name_keeps_its_names_apart() -> None:
    """Two releases share no name that is the cluster's."""
    one, two = documents(release="gate"), documents(release="vramgate")
    scoped = ("ClusterRole", "ClusterRoleBinding", *CONFIGURATIONS)

    for kind in scoped:
        assert of_kind(one, kind)["metadata"]["name"] == "gate-vramgate"
        assert of_kind(two, kind)["metadata"]["name"] == "vramgate"
