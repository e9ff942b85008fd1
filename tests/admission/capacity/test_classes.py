"""Nodes become classes with the budget that one pod has on one card."""

from __future__ import annotations

from typing import Any

import pytest

from admission.capacity.classes import classes_of
from admission.errors import RequestError
from admission.values import NodeClass
from estimator.catalog import device_for_product, resolve_device
from estimator.device import Device
from estimator.units import MIB
from tests.builders import GPU, gpu_labels, node

T4 = device_for_product("Tesla-T4", total_mib=15360, compute_capability=(7, 5), driver="580.95.05")
A100_LABELS: dict[str, Any] = {
    "product": "NVIDIA-A100-SXM4-80GB",
    "memory": "81920",
    "compute": (8, 0),
}


def only(*nodes: dict[str, Any]) -> NodeClass:
    """Return the one class that *nodes* make."""
    (found,) = classes_of(nodes)
    return found


def known(found: NodeClass) -> Device:
    """Return the card of a class whose memory is known."""
    assert found.device is not None, found.unknown_reason
    return found.device


def test_nodes_with_the_same_card_are_one_class() -> None:
    """Two nodes of eight T4 each are one class of two nodes, in the order of their names."""
    found = only(node("t4-1"), node("t4-0"))

    assert (found.name, found.count, found.gpus_per_node) == ("Tesla-T4", 2, 8)
    assert found.nodes == ("t4-0", "t4-1")
    assert found.device == T4
    assert found.sharing == "none"


def test_budget_of_a_whole_card_is_total_less_the_drivers_reservation() -> None:
    """The card's memory is the node's total; the driver keeps its part."""
    card = known(only(node()))

    assert card.total_bytes == 15360 * MIB
    assert card.budget_bytes == 15360 * MIB - card.reservation_bytes
    assert card.compute_capability == (7, 5)
    assert card.driver == "580.95.05"


def test_memory_label_in_bytes_is_read_as_bytes() -> None:
    """Old GPU feature discovery wrote bytes; 42505273344 are 40,536 MiB."""
    labels = gpu_labels(product="NVIDIA-A100-SXM4-40GB", memory="42505273344", compute=(8, 0))

    card = known(only(node(labels=labels)))

    assert card.total_bytes == 42505273344 // MIB * MIB


@pytest.mark.parametrize("memory", ["15728640", "15", "1", "16106127", "40960", "11000"])
def test_memory_label_far_from_the_catalog_is_an_unknown_class(memory: str) -> None:
    """KiB, GiB or a slip of the finger make no card of almost nothing that denies every job."""
    found = only(node(labels=gpu_labels(memory=memory)))

    assert found.device is None
    assert found.unknown_reason == (
        f"label nvidia.com/gpu.memory says {memory}, and Tesla-T4 has 15360 (MiB)"
    )


@pytest.mark.parametrize("memory", ["15109", "12288", "19000"])
def test_memory_label_near_the_catalog_wins_over_it(memory: str) -> None:
    """Drivers and ECC move the total by some percent; a quarter is far more than they do."""
    assert known(only(node(labels=gpu_labels(memory=memory)))).total_bytes == int(memory) * MIB


def test_unheard_of_card_with_less_than_a_gibibyte_is_an_unknown_class() -> None:
    """There is no catalog to compare with: a label in GiB is recognised by its size."""
    labels = gpu_labels(product="NVIDIA-Z900", memory="64", compute=(11, 0))

    found = only(node(labels=labels))

    assert found.device is None
    assert found.unknown_reason == (
        "label nvidia.com/gpu.memory says 64, which is less than 1 GiB (it counts MiB)"
    )


def test_node_without_gpus_is_in_no_class() -> None:
    """A CPU node is left out."""
    assert classes_of([node(labels={}, resources={"cpu": "8"})]) == ()


def test_cards_that_report_other_totals_are_other_classes_largest_first() -> None:
    """The same product with less memory (another driver) has its own budget."""
    smaller = gpu_labels(memory="15109")

    found = classes_of([node("a", labels=smaller), node("b")])

    assert [known(each).total_bytes for each in found] == [15360 * MIB, 15109 * MIB]
    assert [each.nodes for each in found] == [("b",), ("a",)]


def test_invalid_mig_layout_is_an_unknown_class() -> None:
    """`-MIG-INVALID` with memory 0 is unknown, not a card of 0 GiB."""
    labels = gpu_labels(product="NVIDIA-A100-SXM4-40GB-MIG-INVALID", memory="0", count=0)

    found = only(node(labels=labels))

    assert found.device is None
    assert found.unknown_reason == "its MIG slices do not agree with the MIG strategy"


def test_missing_memory_label_is_filled_from_the_catalog_if_the_card_is_known() -> None:
    """GKE labels the accelerator only: its name says how much memory it has."""
    labels = {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}

    found = only(node(labels=labels))

    assert found.device == resolve_device("nvidia-tesla-t4")
    assert found.name == "nvidia-tesla-t4"


def test_missing_memory_label_of_an_unheard_of_card_is_an_unknown_class() -> None:
    """Nothing is guessed; the class says which label is missing."""
    labels = {f"{GPU}.product": "NVIDIA-Z900"}

    found = only(node(labels=labels))

    assert found.device is None
    assert (
        found.unknown_reason
        == "no label nvidia.com/gpu.memory, and NVIDIA-Z900 is not in the catalog"
    )


def test_unheard_of_card_with_its_labels_is_known() -> None:
    """Memory and compute capability of the labels are all that is needed."""
    labels = gpu_labels(product="NVIDIA-Z900", memory="65536", compute=(11, 0))

    card = known(only(node(labels=labels)))

    assert (card.total_bytes, card.compute_capability) == (65536 * MIB, (11, 0))


def test_single_mig_strategy_gives_the_slice() -> None:
    """The resource stays `nvidia.com/gpu`; its memory label is the slice's."""
    labels = gpu_labels(
        **A100_LABELS | {"product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "memory": "9728"}
    )

    found = only(node(labels=labels, resources={GPU: "56"}))

    assert (found.gpu_resource, found.sharing, found.gpus_per_node) == (GPU, "mig", 56)
    assert found.name == "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"
    assert known(found).budget_bytes == 9728 * MIB


def test_mixed_mig_strategy_gives_a_class_for_each_resource() -> None:
    """Each profile has labels of its own beside the whole card's."""
    mig = "nvidia.com/mig-3g.40gb"
    labels = gpu_labels(**A100_LABELS) | {
        f"{mig}.product": "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb",
        f"{mig}.memory": "40320",
        f"{mig}.count": "4",
        f"{mig}.replicas": "1",
    }

    whole, part = classes_of([node(labels=labels, resources={GPU: "6", mig: "4"})])

    assert (whole.gpu_resource, whole.gpus_per_node, whole.sharing) == (GPU, 6, "none")
    assert (part.gpu_resource, part.gpus_per_node, part.sharing) == (mig, 4, "mig")
    assert known(part).budget_bytes == 40320 * MIB


def test_mps_divides_the_usable_memory_among_the_clients() -> None:
    """Each of four clients has a quarter of total less reservation."""
    labels = gpu_labels(product="Tesla-T4-SHARED", replicas="4", sharing_strategy="mps")

    found = only(node(labels=labels, resources={GPU: "32"}))

    assert (found.name, found.sharing, found.gpus_per_node) == ("Tesla-T4/mps-4", "mps", 32)
    assert known(found).budget_bytes == (15360 * MIB - T4.reservation_bytes) // 4


def test_time_slicing_leaves_the_whole_card_as_budget() -> None:
    """Nothing divides the memory: the class is marked, its budget stays the card's."""
    labels = gpu_labels(product="Tesla-T4-SHARED", replicas="4", sharing_strategy="time-slicing")

    found = only(node(labels=labels, resources={GPU: "32"}))

    assert (found.name, found.sharing) == ("Tesla-T4/time-slicing", "time-slicing")
    assert known(found).budget_bytes == T4.budget_bytes


def test_renamed_shared_resource_is_read_by_the_cards_labels() -> None:
    """`nvidia.com/gpu.shared` is time-slicing on the card that the plain labels describe."""
    labels = gpu_labels(replicas="4", sharing_strategy="time-slicing")

    found = only(node(labels=labels, resources={f"{GPU}.shared": "32"}))

    assert (found.gpu_resource, found.sharing) == (f"{GPU}.shared", "time-slicing")
    assert known(found).budget_bytes == T4.budget_bytes


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}},
        {"spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}},
        {"spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}},
        {"status": {"capacity": {GPU: "8"}, "allocatable": {GPU: "0"}}},
        {"status": {"capacity": {GPU: "0"}, "allocatable": {GPU: "0"}}},
        {"status": {}},
    ],
)
def test_state_of_a_node_today_is_ignored(change: dict[str, Any]) -> None:
    """Cordoned, not ready, without its device plugin: the class is what the node is for."""
    assert classes_of([node() | change]) == classes_of([node()])


def test_taints_with_a_purpose_are_kept() -> None:
    """What keeps pods off on purpose stays with the node."""
    taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}

    assert only(node(taints=[taint])).taints == (taint,)


def test_nodes_with_other_labels_are_one_class_with_their_own_facts() -> None:
    """Eligibility is asked of each node, so a zone does not split a class."""
    here, there = gpu_labels(), gpu_labels()
    here["zone"], there["zone"] = "a", "b"

    found = only(node("n0", labels=here), node("n1", labels=there))

    assert [member.labels["zone"] for member in found.members] == ["a", "b"]


def test_cards_of_another_vendor_are_an_unknown_class() -> None:
    """AMD cards are there, and not modelled."""
    found = only(node(labels={}, resources={"amd.com/gpu": "4"}))

    assert (found.device, found.gpus_per_node) == (None, 4)
    assert found.unknown_reason == "cards of amd.com/gpu are not modelled"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"metadata": ["a"]}, "metadata"),
        ({"metadata": {"labels": "a"}}, "metadata.labels"),
        ({"spec": {"taints": ["a"]}}, "spec.taints"),
        ({"status": {"capacity": 8}}, "status.capacity"),
    ],
)
def test_malformed_node_is_named_by_its_field(change: dict[str, Any], path: str) -> None:
    """A file of nodes may be written by hand."""
    with pytest.raises(RequestError) as caught:
        classes_of([node() | change])

    assert caught.value.message.startswith(f"{path}: ")
