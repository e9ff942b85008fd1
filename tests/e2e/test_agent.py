"""The node agent beside a real API server, on cards that a stub of NVML makes up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from admission.cluster import connect
from admission.errors import ClusterError
from admission.objects import ClusterObjects
from estimator.units import GIB, MIB
from tests.chart.installing import kubeconfig_of
from tests.e2e.agent import PEAKS, Agent, pod, report, run_process
from tests.e2e.cluster import ControlPlane
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.nvml.stub import LOST, Nvml, card, compiled, fail, process

pytestmark = pytest.mark.e2e

NODE = "node-of-the-agent"
ONE, TWO = "GPU-1", "GPU-2"
CARDS = (card(ONE, total=16 * GIB), card(TWO, total=40 * GIB))
IDS = {name: character * 64 for name, character in zip(("a", "b", "c"), "abc", strict=True)}
PIDS = {"a": 4001, "b": 4002, "c": 4003}
ACCOUNT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "agent-of-a-test", "namespace": "default"},
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stub, compiled."""
    return compiled(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml(library: Path, tmp_path: Path) -> Nvml:
    """Two cards with nothing on them."""
    made = Nvml(library, tmp_path / "cards")
    made.say(*CARDS)
    return made


@pytest.fixture
def agent(plane: ControlPlane, nvml: Nvml, tmp_path: Path) -> Iterator[Agent]:
    """An agent of the node; not started yet."""
    made = Agent(
        directory=tmp_path,
        kubeconfig=plane.credentials.kubeconfig,
        nvml=nvml,
        proc=tmp_path / "proc",
        node=NODE,
    )
    yield made
    made.stop()


@pytest.fixture
def two_pods(
    api: ApiServer, namespaces: tuple[str, ...], agent: Agent
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """A pod with two containers and one with one, and a process of each."""
    pair = pod("pair", "a", "b", node=NODE), pod("single", "c", node=NODE)
    for document, names in zip(pair, (("a", "b"), ("c",)), strict=True):
        answer = api.create(document)
        assert answer.status == 201, answer.message
        report(api, document, {name: IDS[name] for name in names})
    for name, pid in PIDS.items():
        run_process(agent.proc, pid, IDS[name])
    yield pair
    for document in pair:
        remove(api, document)


def remove(api: ApiServer, document: dict[str, Any]) -> None:
    """Delete a pod at once: there is no kubelet that would end it."""
    api.delete(document, grace_seconds=0)


def peaks_on(api: ApiServer, document: dict[str, Any]) -> Any:
    """Return what the annotation of a pod says."""
    annotations = api.get(document).body["metadata"].get("annotations") or {}
    return json.loads(annotations.get(PEAKS, "{}"))


def test_peaks_of_three_containers_on_two_cards(
    api: ApiServer, nvml: Nvml, agent: Agent, two_pods: tuple[dict[str, Any], ...]
) -> None:
    """Each container has its own on each card, and keeps it when it lets go."""
    nvml.say(
        *CARDS,
        process(ONE, PIDS["a"], 3 * GIB),
        process(TWO, PIDS["a"], 1 * GIB),
        process(TWO, PIDS["b"], 20 * GIB),
        process(ONE, PIDS["c"], 9 * GIB),
    )
    agent.start()
    poll_until(lambda: agent.peak("single", "c", ONE) == 9 * GIB, what="the first marks")

    nvml.say(*CARDS, process(ONE, PIDS["a"], 4 * GIB), process(ONE, PIDS["c"], 2 * GIB))
    poll_until(lambda: agent.peak("pair", "a", ONE) == 4 * GIB, what="a mark that has grown")

    assert agent.peak("pair", "a", TWO) == 1 * GIB
    assert agent.peak("pair", "b", TWO) == 20 * GIB
    assert agent.peak("pair", "b", ONE) is None
    assert agent.peak("single", "c", ONE) == 9 * GIB
    poll_until(lambda: peaks_on(api, two_pods[1]) != {}, what="an annotation")
    assert peaks_on(api, two_pods[1]) == {"c": {ONE: 9 * GIB}}
    assert agent.value("gpu_memory_total_bytes", gpu=TWO) == 40 * GIB
    assert not agent.logged("agent problem")


def test_a_second_is_enough_to_be_seen(
    nvml: Nvml, agent: Agent, two_pods: tuple[dict[str, Any], ...]
) -> None:
    """Whatever is held between one look and the second after it has a mark."""
    agent.start()
    looks = agent.value("agent_samples_total")
    assert looks is not None

    nvml.say(*CARDS, process(TWO, PIDS["b"], 7 * GIB))
    poll_until(lambda: (agent.value("agent_samples_total") or 0) >= looks + 2, what="two looks")
    nvml.say(*CARDS)

    assert agent.peak("pair", "b", TWO) == 7 * GIB


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_restart_keeps_the_mark(
    api: ApiServer, nvml: Nvml, agent: Agent, two_pods: tuple[dict[str, Any], ...], end: str
) -> None:
    """It is on the pod; what was not written yet is written as the agent is told to stop."""
    nvml.say(*CARDS, process(TWO, PIDS["b"], 20 * GIB))
    agent.start()
    poll_until(lambda: peaks_on(api, two_pods[0]) != {}, what="an annotation")
    expected = 20 * GIB
    if end == "stop":
        expected += 100 * MIB  # less than what is written at once
        nvml.say(*CARDS, process(TWO, PIDS["b"], expected))
        poll_until(lambda: agent.peak("pair", "b", TWO) == expected, what="the mark")

    getattr(agent, end)()
    nvml.say(*CARDS, process(TWO, PIDS["b"], 1 * GIB))
    agent.start()

    poll_until(lambda: agent.peak("pair", "b", TWO) is not None, what="a mark")
    assert agent.peak("pair", "b", TWO) == expected


def test_series_go_with_the_pod(
    api: ApiServer, nvml: Nvml, agent: Agent, two_pods: tuple[dict[str, Any], ...]
) -> None:
    """Those of the others stay."""
    nvml.say(*CARDS, process(TWO, PIDS["b"], GIB), process(ONE, PIDS["c"], GIB))
    agent.start()
    poll_until(lambda: len(agent.series("pod_gpu_memory_peak_bytes")) == 2, what="two marks")

    remove(api, two_pods[0])

    poll_until(lambda: agent.peak("pair", "b", TWO) is None, what="the end of the series")
    assert agent.peak("single", "c", ONE) == GIB


def test_estimate_is_held_against_the_peak_once(
    api: ApiServer, namespaces: tuple[str, ...], nvml: Nvml, agent: Agent
) -> None:
    """As the pod ends: its last peak is written too."""
    estimate = {"vramgate.dev/estimate-bytes": str(10 * GIB)}
    document = pod("estimated", "a", node=NODE, **estimate)
    assert api.create(document).status == 201
    report(api, document, {"a": IDS["a"]})
    run_process(agent.proc, PIDS["a"], IDS["a"])
    nvml.say(*CARDS, process(TWO, PIDS["a"], 9 * GIB))
    agent.start()
    poll_until(lambda: peaks_on(api, document) != {}, what="an annotation")
    nvml.say(*CARDS, process(TWO, PIDS["a"], 11 * GIB))
    poll_until(lambda: agent.peak("estimated", "a", TWO) == 11 * GIB, what="the mark")

    report(api, document, {"a": IDS["a"]}, phase="Succeeded")

    count = partial(agent.value, "estimate_error_ratio_count", ended="succeeded")
    poll_until(lambda: count() == 1, what="the ratio")
    assert agent.value("estimate_error_ratio_sum", ended="succeeded") == pytest.approx(1.1)
    expected = {"a": {TWO: 11 * GIB}}
    poll_until(lambda: peaks_on(api, document) == expected, what="the last peak on the pod")
    remove(api, document)


def test_pod_of_the_same_name_is_not_written_on(
    plane: ControlPlane, api: ApiServer, namespaces: tuple[str, ...]
) -> None:
    """A peak is of one pod: the API server refuses another UID."""
    document = pod("replaced", "a", node=NODE)
    assert api.create(document).status == 201
    client = connect(plane.credentials.kubeconfig)
    path = "/api/v1/namespaces/default/pods/replaced"
    change = {"metadata": {"uid": "another", "annotations": {PEAKS: "{}"}}}

    with pytest.raises(ClusterError) as caught:
        ClusterObjects(client).patch(path, change)

    assert caught.value.status == 422
    assert peaks_on(api, document) == {}
    remove(api, document)


def test_missing_rights_are_named_and_waited_out(
    plane: ControlPlane,
    api: ApiServer,
    nvml: Nvml,
    agent: Agent,
    two_pods: tuple[dict[str, Any], ...],
    tmp_path: Path,
) -> None:
    """Cards are shown all the while; with the right to list, and then to patch, it goes on."""
    assert api.create(ACCOUNT).status in (201, 409)
    agent.kubeconfig = kubeconfig_of(plane, api.token(ACCOUNT), directory=tmp_path)
    agent.settings = {"annotationSeconds": 1}
    nvml.say(*CARDS, process(ONE, PIDS["c"], GIB))
    agent.begin()
    poll_until(lambda: agent.value("agent_problems", problem="pods-unknown") == 1, what="a problem")
    poll_until(lambda: agent.value("watch_interrupted", resource="pods") == 1, what="an outage")
    assert agent.value("gpu_memory_total_bytes", gpu=ONE) == 16 * GIB

    grant(api, ["list", "watch"])
    forbidden = partial(agent.value, "agent_problems", problem="annotation-forbidden")
    poll_until(lambda: forbidden() == 1, what="a write that is refused")
    assert agent.peak("single", "c", ONE) == GIB

    grant(api, ["list", "watch", "patch"])
    poll_until(lambda: peaks_on(api, two_pods[1]) != {}, what="an annotation")
    poll_until(lambda: forbidden() == 0, what="the end of the problem")
    assert len(agent.logged("watch interrupted", reason="403 Forbidden")) == 1
    assert len(agent.logged("agent problem", problem="annotation-forbidden")) == 1
    assert len(agent.logged("agent problem over", problem="annotation-forbidden")) == 1


def test_lost_card_is_named_and_comes_back(
    nvml: Nvml, agent: Agent, two_pods: tuple[dict[str, Any], ...]
) -> None:
    """The other card is measured meanwhile, and no mark is lost."""
    both = (process(ONE, PIDS["c"], GIB), process(TWO, PIDS["b"], GIB))
    nvml.say(*CARDS, *both)
    agent.start()
    poll_until(lambda: len(agent.series("pod_gpu_memory_peak_bytes")) == 2, what="two marks")

    nvml.say(*CARDS, *both, process(TWO, PIDS["a"], 2 * GIB), fail(ONE, LOST))
    lost = partial(agent.value, "agent_problems", problem="card-lost")
    poll_until(lambda: lost() == 1, what="the lost card")
    poll_until(lambda: agent.peak("pair", "a", TWO) == 2 * GIB, what="a mark on the other")
    assert agent.value("gpu_memory_total_bytes", gpu=ONE) is None
    assert agent.peak("single", "c", ONE) == GIB

    nvml.say(*CARDS, *both)
    poll_until(lambda: lost() == 0, what="its return")
    assert agent.value("gpu_memory_total_bytes", gpu=ONE) == 16 * GIB
    assert len(agent.logged("agent problem", problem="card-lost")) == 1


def grant(api: ApiServer, verbs: list[str]) -> None:
    """Let the account do *verbs* with pods, and nothing else."""
    name = "agent-of-a-test"
    group = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}],
    }
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", **ACCOUNT["metadata"]}],
    }
    for document in (role, binding):
        assert api.apply(document).status in (200, 201)
