"""What the test kubelet makes of pods, as the API server is told it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from kubernetes import client

from tests.e2e.kubelet.environment import Image
from tests.e2e.kubelet.kubelet import Kubelet
from tests.e2e.processes import poll_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("namespaces", "kubelet")]

NAMESPACE = "off"
NODE = "by-hand"
IMAGES = {"example.com/machine": Image(())}
DEAF = """
import pathlib, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
while True:
    signal.pause()
"""
LOOK = """
import os, pathlib
account = pathlib.Path(os.environ["TEST_KUBELET_ACCOUNT"])
assert (account / "namespace").read_text() == os.environ["NAMESPACE"] == "off"
assert (account / "token").read_text().count(".") == 2
assert "BEGIN CERTIFICATE" in (account / "ca.crt").read_text()
assert os.environ["ADDRESS"] == "http://" + os.environ["POD_IP"] != "http://"
"""


@pytest.fixture(scope="module")
def kubelet(core: client.CoreV1Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubelet]:
    """Run a node of our own; pods are bound to it by name."""
    directory = tmp_path_factory.mktemp("kubelet") / NODE
    with Kubelet(
        NODE, number=9, core=core, images=IMAGES, directory=directory, labels={}
    ) as running:
        yield running
    core.delete_node(NODE)


def test_container_has_its_account_and_environment_and_ends_as_it_ends(
    core: client.CoreV1Api,
) -> None:
    """A program that finds all it looks for, and one that ends with another status."""
    sources = {"NAMESPACE": "metadata.namespace", "POD_IP": "status.podIP"}
    environment = [
        *({"name": key, "valueFrom": {"fieldRef": {"fieldPath": sources[key]}}} for key in sources),
        {"name": "ADDRESS", "value": "http://$(POD_IP)"},
    ]
    looks = pod("looks", [sys.executable, "-c", LOOK], env=environment)
    fails = pod("fails", ["sh", "-c", "exit 3"])

    made = [core.create_namespaced_pod(NAMESPACE, each) for each in (looks, fails)]

    for each, phase in zip(made, ("Succeeded", "Failed"), strict=True):
        poll_until(partial(is_in, core, each, phase), what=f"{each.metadata.name} {phase}")
    (status,) = read(core, made[1]).status.container_statuses
    assert status.state.terminated.exit_code == 3


def test_probe_sees_a_config_map_that_changed(core: client.CoreV1Api) -> None:
    """The folder has the new file, the probe finds it, the pod is ready."""
    metadata = {"name": "word"}
    core.create_namespaced_config_map(NAMESPACE, {"metadata": metadata, "data": {"word": "one"}})
    probe = {"exec": {"command": ["grep", "-q", "two", "/etc/words/word"]}, "periodSeconds": 1}
    mount = {"name": "words", "mountPath": "/etc/words"}
    document = pod("waits", ["sleep", "600"], readinessProbe=probe, volumeMounts=[mount])
    document["spec"]["volumes"] = [{"name": "words", "configMap": {"name": "word"}}]

    made = core.create_namespaced_pod(NAMESPACE, document)

    poll_until(partial(is_in, core, made, "Running"), what="a running pod")
    assert not is_ready(core, made)
    core.patch_namespaced_config_map("word", NAMESPACE, {"data": {"word": "two"}})
    poll_until(partial(is_ready, core, made), what="a pod that is ready")
    core.delete_namespaced_pod("waits", NAMESPACE, grace_period_seconds=0)


def test_container_that_is_not_alive_is_started_again(core: client.CoreV1Api) -> None:
    """It is ended as at its end, and the pod stays."""
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    document = pod("sick", ["sleep", "600"], livenessProbe=probe)
    document["spec"]["restartPolicy"] = "Always"

    made = core.create_namespaced_pod(NAMESPACE, document)

    poll_until(partial(has_restarted, core, made), what="another start")
    (status,) = read(core, made).status.container_statuses
    assert status.last_state.terminated.exit_code == 128 + signal.SIGTERM
    core.delete_namespaced_pod("sick", NAMESPACE, grace_period_seconds=0)


def test_container_that_is_deaf_to_sigterm_is_killed_after_its_grace(
    core: client.CoreV1Api,
) -> None:
    """Then it and its pod are gone."""
    probe = {"exec": {"command": ["test", "-e", "/state/deaf"]}, "periodSeconds": 1}
    mount = {"name": "state", "mountPath": "/state"}
    argv = [sys.executable, "-c", DEAF, "/state/deaf"]
    document = pod("deaf", argv, readinessProbe=probe, volumeMounts=[mount])
    document["spec"] |= {
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "state", "emptyDir": {}}],
    }

    made = core.create_namespaced_pod(NAMESPACE, document)
    poll_until(partial(is_ready, core, made), what="a process that is deaf")
    began = time.monotonic()
    core.delete_namespaced_pod("deaf", NAMESPACE)

    poll_until(partial(is_gone, core, made), what="its end")
    assert time.monotonic() - began >= 1


def test_pod_that_cannot_be_run_says_why(core: client.CoreV1Api) -> None:
    """Nothing is left out in silence."""
    document = pod("strange", ["true"])
    document["spec"]["containers"][0]["image"] = "example.com/other:1"

    made = core.create_namespaced_pod(NAMESPACE, document)

    poll_until(lambda: bool(read(core, made).status.message), what="a message")
    assert "example.com/other" in read(core, made).status.message
    core.delete_namespaced_pod("strange", NAMESPACE, grace_period_seconds=0)


def pod(name: str, command: list[str], **container: Any) -> dict[str, Any]:
    """Return a pod of one container that is on our node already."""
    own = {"name": "main", "image": "example.com/machine:1", "command": command, **container}
    spec = {"nodeName": NODE, "restartPolicy": "Never", "containers": [own]}
    return {"metadata": {"name": name}, "spec": spec}


def read(core: client.CoreV1Api, made: client.V1Pod) -> client.V1Pod:
    """Return what the API server knows of *made*."""
    return core.read_namespaced_pod(made.metadata.name, NAMESPACE)


def is_in(core: client.CoreV1Api, made: client.V1Pod, phase: str) -> bool:
    """Return whether *made* is in *phase*."""
    return bool(read(core, made).status.phase == phase)


def is_ready(core: client.CoreV1Api, made: client.V1Pod) -> bool:
    """Return whether *made* is."""
    conditions: Mapping[str, str] = {
        each.type: each.status for each in read(core, made).status.conditions or ()
    }
    return conditions.get("Ready") == "True"


def has_restarted(core: client.CoreV1Api, made: client.V1Pod) -> bool:
    """Return whether the container of *made* was started more than once."""
    return any(each.restart_count for each in read(core, made).status.container_statuses or ())


def is_gone(core: client.CoreV1Api, made: client.V1Pod) -> bool:
    """Return whether *made* is no more."""
    pods = core.list_namespaced_pod(NAMESPACE).items
    return all(each.metadata.uid != made.metadata.uid for each in pods)
