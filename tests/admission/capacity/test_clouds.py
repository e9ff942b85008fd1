"""Nodes that only a cloud labels have the card that the cloud means, or none is guessed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from admission.capacity.classes import classes_of
from admission.capacity.instances import instance_of
from admission.values import NodeClass
from admission.workloads.instances import gpus_of
from estimator.catalog import gpu_named, resolve_device
from tests.builders import GPU, gpu_labels, node

TYPE = "node.kubernetes.io/instance-type"
KARPENTER = "karpenter.k8s.aws/instance-gpu"
GKE = "cloud.google.com/gke-accelerator"


def only(labels: Mapping[str, str], **resources: str) -> NodeClass:
    """Return the one class of a node with *labels*; `gpus=` is how many it offers."""
    (found,) = classes_of([node(labels=labels, resources={GPU: resources.get("gpus", "8")})])
    return found


def karpenter(name: str, memory: int, *, prefix: str = KARPENTER, count: int = 8) -> dict[str, str]:
    """Return the labels of Karpenter on AWS."""
    return {
        f"{prefix}-name": name,
        f"{prefix}-manufacturer": "nvidia",
        f"{prefix}-memory": str(memory),
        f"{prefix}-count": str(count),
    }


@pytest.mark.parametrize(
    ("labels", "card"),
    [
        (karpenter("t4", 16384), "t4"),
        (karpenter("a10g", 22888), "a10g"),
        (karpenter("v100", 16384), "v100-sxm2-16gb"),
        (karpenter("v100", 32768), "v100-sxm2-32gb"),
        (karpenter("a100", 40960), "a100-sxm4-40gb"),
        (karpenter("a100", 81920), "a100-sxm4-80gb"),
        (karpenter("h100", 81920), "h100-sxm5-80gb"),
        (karpenter("h200", 144384), "h200"),
        (karpenter("b200", 183359), "b200"),
        (karpenter("rtx-pro-server-6000", 98304), "rtx-pro-6000-blackwell"),
        (karpenter("l4", 22888, prefix="eks.amazonaws.com/instance-gpu"), "l4"),
        ({GKE: "nvidia-tesla-a100"}, "a100-sxm4-40gb"),
        ({GKE: "nvidia-a100-80gb"}, "a100-sxm4-80gb"),
        ({GKE: "nvidia-h100-mega-80gb"}, "h100-sxm5-80gb"),
        ({GKE: "nvidia-l4"}, "l4"),
        (
            {"gpu.nvidia.com/model": "H100_NVLINK_80GB", "gpu.nvidia.com/vram": "81"},
            "h100-sxm5-80gb",
        ),
        ({"gpu.nvidia.com/class": "Tesla_V100", "gpu.nvidia.com/vram": "16"}, "v100-pcie-16gb"),
        ({"gpu.nvidia.com/class": "RTX_A5000"}, "rtx-a5000"),
        ({TYPE: "Standard_NC24ads_A100_v4"}, "a100-pcie-80gb"),
        ({TYPE: "p4d.24xlarge"}, "a100-sxm4-40gb"),
        ({TYPE: "a2-ultragpu-8g"}, "a100-sxm4-80gb"),
        ({TYPE: "a4x-highgpu-4g-nolssd"}, "gb200"),
        ({"k8s.amazonaws.com/accelerator": "nvidia-tesla-t4"}, "t4"),
        ({"karpenter.azure.com/sku-gpu-name": "T4"}, "t4"),
    ],
)
def test_label_of_a_cloud_names_the_card(labels: dict[str, str], card: str) -> None:
    """The figures are the catalog's: what a cloud announces is a nominal size."""
    gpus = "1" if "NC24" in str(labels) else "4"
    found = only(labels, gpus=gpus)

    assert found.device == resolve_device(card), found.unknown_reason


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (
            {"k8s.amazonaws.com/accelerator": "nvidia-tesla-v100"},
            "label k8s.amazonaws.com/accelerator nvidia-tesla-v100 may be v100-sxm2-16gb or "
            "v100-sxm2-32gb",
        ),
        ({"k8s.amazonaws.com/accelerator": "true"}, "accelerator true is not in the catalog"),
        ({"karpenter.azure.com/sku-gpu-name": "A100"}, "may be a100-pcie-80gb or"),
        (karpenter("b300", 275040), "b300 is not in the catalog"),
        (karpenter("l4", 2861, count=0), "label karpenter.k8s.aws/instance-gpu-name l4 has 23034"),
        ({"gpu.nvidia.com/class": "Tesla_V100"}, "may be v100-pcie-16gb or v100-pcie-32gb"),
    ],
)
def test_name_that_may_be_two_cards_is_an_unknown_class(
    labels: dict[str, str], reason: str
) -> None:
    """The smaller one would deny what the larger one holds; a fraction of a card is none."""
    found = only(labels)

    assert found.device is None
    assert reason in (found.unknown_reason or "")


def test_type_of_the_machine_settles_what_the_accelerator_label_leaves_open() -> None:
    """A p3dn has the larger V100."""
    labels = {"k8s.amazonaws.com/accelerator": "nvidia-tesla-v100", TYPE: "p3dn.24xlarge"}

    assert only(labels).device == resolve_device("v100-sxm2-32gb")


def test_gpu_feature_discovery_counts_before_the_cloud() -> None:
    """The driver's own word is the exact one."""
    found = only(gpu_labels(memory="15109") | {TYPE: "p5.48xlarge"})

    assert found.product == "Tesla-T4"
    assert found.device is not None
    assert found.device.total_bytes == 15109 << 20


def test_machine_that_offers_more_gpus_than_it_has_is_an_unknown_class() -> None:
    """Slices without labels: seven of an A100 look like seven cards."""
    found = only({TYPE: "Standard_NC24ads_A100_v4"}, gpus="7")

    assert found.device is None
    assert "offers 7 GPUs and its labels describe 1" in (found.unknown_reason or "")


@pytest.mark.parametrize(
    ("labels", "gpus"),
    [({TYPE: "g5.12xlarge"}, 4), (karpenter("t4", 16384, count=4), 4), ({GKE: "nvidia-l4"}, 0)],
)
def test_node_without_its_device_plugin_has_as_many_as_the_cloud_says(
    labels: dict[str, str], gpus: int
) -> None:
    """A node that boots, or the template of an autoscaler, is taken at its word."""
    (found,) = classes_of([node(labels=labels, resources={})])

    assert (found.gpu_resource, found.gpus_per_node) == (GPU, gpus)


def test_cards_of_amd_are_named_and_not_modelled() -> None:
    """The name helps whoever reads the message; the memory behaves otherwise."""
    labels = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}

    (found,) = classes_of([node(labels=labels, resources={"amd.com/gpu": "8"})])

    assert (found.name, found.device) == ("AMD_Instinct_MI300X_OAM", None)
    assert found.unknown_reason == "cards of amd.com/gpu are not modelled"


def test_labels_of_alibaba_have_the_drivers_memory() -> None:
    """`nvidia_mem` is what NVML says, so it is taken as it is."""
    labels = {
        "aliyun.accelerator/nvidia_name": "Tesla-P100-PCIE-16GB",
        "aliyun.accelerator/nvidia_mem": "16276MiB",
        "aliyun.accelerator/nvidia_count": "8",
    }

    found = only(labels)

    assert found.device is not None, found.unknown_reason
    assert found.device.total_bytes == 16276 << 20


def test_partition_of_gke_is_the_slice() -> None:
    """The resource stays nvidia.com/gpu."""
    labels = {GKE: "nvidia-tesla-a100", "cloud.google.com/gke-gpu-partition-size": "1g.5gb"}

    found = only(labels)

    assert (found.name, found.sharing) == ("nvidia-tesla-a100-MIG-1g.5gb", "mig")
    assert found.device == resolve_device("a100-sxm4-40gb/1g.5gb")


@pytest.mark.parametrize(
    ("strategy", "sharing", "divided"), [("time-sharing", "time-slicing", 1), ("mps", "mps", 4)]
)
def test_gpu_sharing_of_gke_is_read(strategy: str, sharing: str, divided: int) -> None:
    """Four clients a card: by turns, or with a quarter of the memory each."""
    t4 = gpu_named("t4")
    assert t4 is not None
    found = only(
        {
            GKE: "nvidia-tesla-t4",
            "cloud.google.com/gke-gpu-sharing-strategy": strategy,
            "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
            "cloud.google.com/gke-accelerator-count": "2",
        }
    )

    assert found.sharing == sharing
    assert found.device is not None, found.unknown_reason
    assert found.device.budget_bytes == (t4.usable_mib << 20) // divided


@pytest.mark.parametrize(
    "labels",
    [
        {f"{GPU}.product": "NVIDIA-GB10", f"{GPU}.count": "1"},
        {f"{GPU}.product": "Orin", f"{GPU}.machine": "NVIDIA-Jetson-AGX-Orin-Developer-Kit"},
        {f"{GPU}.product": "NVIDIA-Thor", f"{GPU}.memory": "125771"},
        {f"{GPU}.product": "unknown", f"{GPU}.machine": "Jetson-AGX-Xavier"},
    ],
)
def test_card_that_shares_the_machines_memory_is_an_unknown_class(labels: dict[str, str]) -> None:
    """What the system takes of it is not known, whether a memory label is there or not."""
    found = only(labels, gpus="1")

    assert found.device is None
    assert "has no memory of its own" in (found.unknown_reason or "")


def test_missing_memory_of_a_name_with_two_sizes_is_an_unknown_class() -> None:
    """An RTX 3080 has 10 or 12 GiB."""
    found = only({f"{GPU}.product": "NVIDIA-GeForce-RTX-3080", f"{GPU}.count": "8"})

    assert found.device is None
    assert "may have 10240 or 12288" in (found.unknown_reason or "")


def test_more_cards_than_the_labels_count_are_several_kinds() -> None:
    """GPU feature discovery counts the one kind it describes, and its labels flip."""
    found = only(gpu_labels(count=4))

    assert found.device is None
    assert "offers 8 GPUs and its labels describe 4" in (found.unknown_reason or "")


def test_slice_far_from_its_profile_is_an_unknown_class() -> None:
    """The whole card's memory beside a slice's name would let everything in."""
    labels = gpu_labels(
        product="NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", memory="81920", compute=(8, 0), count=56
    )

    found = only(labels)

    assert found.device is None
    assert "has 9728 (MiB)" in (found.unknown_reason or "")


def test_table_of_machines_names_cards_of_the_catalog_and_agrees_with_that_of_kinds() -> None:
    """A workload's number of GPUs by its instance type is the node's."""
    for name in ("Standard_NC16_A16", "g5.48xlarge", "p4d.24xlarge", "Standard_NC24rs_v3"):
        found = instance_of({TYPE: name})

        assert found is not None
        assert gpu_named(found[1].card) is not None
        assert found[1].count == gpus_of(name)
