"""Nodes that could still appear count, and an operator's word on cards beats the labels."""

from __future__ import annotations

import asyncio

import pytest

from admission.capacity.classes import classes_of
from admission.capacity.eligibility import reach_of
from admission.config import parse_settings
from admission.errors import SettingsError
from admission.inventory import Inventory
from admission.node_settings import NodeSettings
from estimator.catalog import resolve_device
from estimator.units import MIB
from tests.builders import GPU, gpu_labels, node, unit


def settings(text: str) -> NodeSettings:
    """Return the settings below `nodes:`."""
    return parse_settings(f"nodes: {{{text}}}").nodes


def problems(text: str) -> str:
    """Return what is wrong with the settings below `nodes:`."""
    with pytest.raises(SettingsError) as caught:
        settings(text)
    return str(caught.value)


POOL = (
    "pools: [{name: a100, product: a100-sxm4-80gb, count: 4, gpusPerNode: 8, "
    "labels: {pool: a100}, taints: [{key: team, value: a, effect: NoSchedule}]}]"
)


def test_pool_that_is_scaled_to_zero_is_a_class() -> None:
    """Its cards are the catalog's, its nodes as many as it can grow to."""
    (found,) = classes_of([], settings(POOL))

    assert (found.name, found.count, found.gpus_per_node) == ("a100-sxm4-80gb", 4, 8)
    assert found.nodes == ("a100-0", "a100-1", "a100-2", "a100-3")
    assert found.device == resolve_device("a100-sxm4-80gb")


def test_nodes_of_the_pool_that_are_there_are_counted_off() -> None:
    """Three of four are left to come; the one that runs has its own labels."""
    there = node(labels=gpu_labels() | {"pool": "a100"})

    classes = classes_of([there], settings(POOL))

    assert [(each.name, each.count) for each in classes] == [("a100-sxm4-80gb", 3), ("Tesla-T4", 1)]


def test_pool_is_eligible_by_its_own_labels_and_taints() -> None:
    """An autoscaler adds no node for a label that it does not know of the pool."""
    classes = classes_of([], settings(POOL))
    tolerations = [{"key": "team", "operator": "Exists"}]

    chosen = unit(nodeSelector={"pool": "a100"}, tolerations=tolerations)
    by_product = unit(nodeSelector={f"{GPU}.product": "x"}, tolerations=tolerations)

    assert reach_of(chosen, classes).reachable
    assert not reach_of(by_product, classes).reachable
    assert not reach_of(unit(), classes).reachable


def test_pool_of_a_card_that_the_catalog_lacks_is_given_by_its_figures() -> None:
    """Total and compute capability are all that is needed."""
    text = (
        'pools: [{name: new, memory: 65536MiB, compute: "11.0", resource: nvidia.com/gpu.shared}]'
    )
    (found,) = classes_of([], settings(text))

    assert found.device is not None
    assert found.device.total_bytes == 65536 * MIB
    assert found.gpu_resource == "nvidia.com/gpu.shared"


def test_pool_with_time_slicing_is_one() -> None:
    """So that nothing there is better than tight."""
    (found,) = classes_of([], settings("pools: [{name: t, product: t4, sharing: time-slicing}]"))

    assert (found.name, found.sharing) == ("t4/time-slicing", "time-slicing")


@pytest.mark.parametrize(
    "labels",
    [
        gpu_labels(count=4) | {"pool": "x"},
        {f"{GPU}.product": "NVIDIA-GB10", "pool": "x"},
        gpu_labels(memory="15") | {"pool": "x"},
        {"pool": "x"},
    ],
)
def test_card_that_is_told_of_a_node_beats_its_labels(labels: dict[str, str]) -> None:
    """Mixed cards, unified memory, a wrong label, no label at all."""
    told = settings(
        "classes: [{selector: {pool: x}, product: l4}, {selector: {a: b}, product: t4}]"
    )

    (found,) = classes_of([node(labels=labels)], told)

    assert (found.name, found.device) == ("l4", resolve_device("l4"))


def test_told_card_leaves_other_nodes_alone() -> None:
    """Every label of the selector is needed."""
    told = settings("classes: [{selector: {pool: x, zone: y}, product: l4}]")

    (found,) = classes_of([node(labels=gpu_labels() | {"pool": "x"})], told)

    assert found.product == "Tesla-T4"


def test_told_card_is_divided_as_the_labels_say() -> None:
    """Only what the card is was told."""
    told = settings("classes: [{selector: {pool: x}, product: l4}]")
    labels = gpu_labels(replicas="4", sharing_strategy="mps") | {"pool": "x"}

    (found,) = classes_of([node(labels=labels, resources={GPU: "32"})], told)

    assert found.name == "l4/mps-4"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pools: [{name: a}]", "one of product and memory is needed"),
        ("pools: [{name: a, product: t4, memory: 1GiB}]", "one of product and memory is needed"),
        ("pools: [{name: a, memory: 24GiB}]", "memory and compute belong together"),
        ("pools: [{name: a, product: t5}]", "'t5' is not a known card"),
        ('pools: [{name: a, product: "memory=1GiB,compute=8.0"}]', "product is the name of a card"),
        ('pools: [{name: a, memory: 24GB, compute: "8.0"}]', "GB means"),
        ("pools: [{name: a, product: t4, count: 0}]", "count"),
        ("pools: [{name: a, product: t4, gpusPerNode: 0}]", "gpusPerNode"),
        ("pools: [{name: a, product: t4, labels: {a b: c}}]", "labels"),
        ("pools: [{name: a, product: t4, taints: [{key: a, effect: Never}]}]", "effect"),
        ("pools: [{name: a, product: t4, resource: gpu}]", "resource"),
        ("pools: [{name: a, product: t4, sharing: mps}]", "sharing"),
        ("pools: [{name: a, product: t4}, {name: a, product: l4}]", "two pools are called a"),
        ("pools: [{name: a, product: t4, colour: red}]", "colour"),
        ("classes: [{selector: {}, product: t4}]", "at least one label is needed"),
        ("classes: [{product: t4}]", "selector"),
    ],
)
def test_mistake_in_the_settings_is_named(text: str, problem: str) -> None:
    """Before anything is judged by it."""
    assert problem in problems(text)


def test_inventory_has_the_pools_before_any_node_is_there() -> None:
    """A cluster may be scaled to zero."""
    inventory = Inventory(keep_seconds=0, namespaces_expected=False, settings=settings(POOL))
    inventory.set_nodes({})

    asyncio.run(inventory.refresh())

    assert [found.name for found in inventory.classes] == ["a100-sxm4-80gb"]
