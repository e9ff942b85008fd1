"""Whatever nodes say, classes come of it; of thousands, each kind is worked out once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from admission.capacity.cards import Cards
from admission.capacity.classes import classes_of
from admission.capacity.eligibility import reach_of
from admission.cluster import cut_node
from tests.builders import GPU, gpu_labels, node, unit

NUM_NODES = 5000
KEYS = st.sampled_from(
    [
        *(f"{GPU}.{key}" for key in ("product", "memory", "count", "replicas", "sharing-strategy")),
        *(f"{GPU}.compute.{key}" for key in ("major", "minor")),
        f"{GPU}.machine",
        "nvidia.com/mig-1g.10gb.memory",
        "nvidia.com/mig-1g.10gb.product",
        "nvidia.com/cuda.driver.major",
        "karpenter.k8s.aws/instance-gpu-name",
        "karpenter.k8s.aws/instance-gpu-memory",
        "karpenter.k8s.aws/instance-gpu-count",
        "cloud.google.com/gke-accelerator",
        "cloud.google.com/gke-gpu-partition-size",
        "cloud.google.com/gke-gpu-sharing-strategy",
        "cloud.google.com/gke-max-shared-clients-per-gpu",
        "gpu.nvidia.com/model",
        "gpu.nvidia.com/vram",
        "k8s.amazonaws.com/accelerator",
        "node.kubernetes.io/instance-type",
        "node.koordinator.sh/gpu-model",
        "aliyun.accelerator/nvidia_name",
        "aliyun.accelerator/nvidia_mem",
        "amd.com/gpu.product-name",
    ]
)
WORDS = st.sampled_from(
    [
        *("Tesla-T4", "NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED", "t4"),
        *("A100-MIG-INVALID", "a100", "v100", "g5.xlarge", "mps", "time-slicing", "none", "1g.5gb"),
        *("0", "1", "8", "15360", "81920", "42505273344", "-1", "1.5", "16276MiB", ""),
    ]
)
VALUES = st.one_of(WORDS, st.text(max_size=30))
RESOURCES = st.dictionaries(
    st.sampled_from(
        [
            GPU,
            f"{GPU}.shared",
            "nvidia.com/mig-1g.10gb",
            "amd.com/gpu",
            "volcano.sh/vgpu-number",
            "volcano.sh/gpu-memory",
            "koordinator.sh/gpu",
            "koordinator.sh/gpu-memory",
            "aliyun.com/gpu-mem",
            "aliyun.com/gpu-count",
            "tencent.com/vcuda-core",
            "tencent.com/vcuda-memory",
            "cpu",
        ]
    ),
    VALUES,
    max_size=4,
)
REGISTERED = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["GPU-0,10,15360,100,NVIDIA-Tesla T4,0,true:", "[{}]", "[", '{"a": 1}', "[[]]"]
    ),
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(["hami.io/node-nvidia-register", "volcano.sh/node-vgpu-register"]), REGISTERED
)


@given(labels=st.dictionaries(KEYS, VALUES), resources=RESOURCES, annotations=ANNOTATIONS)
def test_no_label_crashes(
    labels: dict[str, str], resources: dict[str, str], annotations: dict[str, str]
) -> None:
    """A class has a card with a budget, or the reason why it has none."""
    found: dict[str, Any] = node(labels=labels, resources=resources)
    found["metadata"]["annotations"] = annotations

    for node_class in classes_of([cut_node(found)]):
        assert (node_class.device is None) == (node_class.unknown_reason is not None)
        if node_class.device is not None:
            budget, total = node_class.device.budget_bytes, node_class.device.total_bytes
            assert budget is not None
            assert total is not None
            assert 0 <= budget <= total


def many() -> list[dict[str, Any]]:
    """Return thousands of nodes of two kinds, as they arrive from the API server."""
    kinds = (
        gpu_labels(),
        gpu_labels(product="NVIDIA-A100-SXM4-80GB", memory="81920", compute=(8, 0)),
    )
    return [
        node(
            f"node-{index}",
            labels=kinds[index % 2]
            | {
                "nvidia.com/gfd.timestamp": str(1_700_000_000 + index),
                "topology.kubernetes.io/zone": f"zone-{index % 3}",
            },
        )
        for index in range(NUM_NODES)
    ]


def test_thousands_of_nodes_are_worked_out_once_a_kind() -> None:
    """Names, zones and timestamps make no other kind."""
    cards = Cards()
    for each in many():
        cards.of(each)

    assert cards.num_looks == 2
    assert [found.count for found in classes_of(many())] == [NUM_NODES // 2] * 2


def test_texts_that_nodes_share_are_held_once() -> None:
    """Of each node only its name and its timestamp are its own."""
    nodes = [cut_node(each) for each in many()]

    held: set[int] = set()
    for each in nodes:
        labels = each["metadata"]["labels"]
        held.update(id(value) for value in labels.values())
        held.update(map(id, labels))

    num_kinds_of_text = 64
    assert len(held) <= 2 * NUM_NODES + num_kinds_of_text


def test_rules_of_a_pod_are_asked_once_a_kind_of_node() -> None:
    """A review walks every node; those that look alike to the pod are narrowed together."""
    classes = classes_of(many())

    reach = reach_of(unit(nodeSelector={"topology.kubernetes.io/zone": "zone-1"}), classes)

    assert sum(found.count for found in reach.reachable) == len(range(1, NUM_NODES, 3))
