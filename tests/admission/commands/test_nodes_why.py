"""Why a job may not go to a node: everything that is asked, and what the node has."""

from __future__ import annotations

from typing import Any

import pytest

from admission.capacity.classes import classes_of
from admission.commands.nodes_why import Closed, closed_nodes
from tests.admission.commands.a100_nodes import TAINT, a100
from tests.builders import GPU, unit

MEMORY = f"{GPU}.memory"


def closed(node_object: dict[str, Any], *, gpus: int = 1, **spec: Any) -> tuple[Closed, ...]:
    """Return what closes a node to a pod with *spec*."""
    (node_class,) = classes_of([node_object])
    found, _ = closed_nodes(unit(gpus=gpus, **spec), node_class)
    return found


def affinity(*terms: Any) -> dict[str, Any]:
    """Return a required node affinity of *terms*."""
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def expressions(key: str, operator: str, *values: str) -> list[Any]:
    """Return one expression."""
    return [{"key": key, "operator": operator, "values": list(values)}]


def term(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return a term of one expression on labels."""
    return {"matchExpressions": expressions(key, operator, *values)}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"gpus": 16}, "has 8 GPUs a node, and a pod asks for 16"),
        ({"nodeSelector": {"pool": "b"}}, "nodeSelector pool=b: the node has a"),
        ({"nodeSelector": {"zone": "b"}}, "nodeSelector zone=b: the node has no such label"),
        ({"nodeName": "other"}, "nodeName is other"),
        (
            {"affinity": affinity(term(MEMORY, "Gt", "50000"))},
            f"required nodeAffinity: {MEMORY} Gt 50000: the node has 40960",
        ),
        (
            {"affinity": affinity({"matchFields": expressions("metadata.name", "In", "x", "y")})},
            "required nodeAffinity: metadata.name In (x, y): it is a100",
        ),
        ({"affinity": affinity()}, "required nodeAffinity has no term, which matches nothing"),
        (
            {"affinity": affinity({})},
            "required nodeAffinity: an empty term matches nothing",
        ),
    ],
)  # fmt: skip
def test_reason_names_what_is_asked_and_what_the_node_has(spec: dict[str, Any], why: str) -> None:
    """So that a person need not compare labels."""
    found = closed(a100(labels={"pool": "a"}), **spec)

    assert found == (Closed(nodes=("a100",), why=[why]),)


def test_every_reason_is_told_and_each_alternative_of_the_affinity() -> None:
    """Taking one obstacle away must not show the next."""
    terms = [term("pool", "In", "b"), term("zone", "Exists")]
    found = closed(
        a100(labels={"pool": "a"}, taints=[TAINT]),
        nodeSelector={"disk": "ssd"},
        affinity=affinity(*terms),
    )

    assert found[0].why == [
        "nodeSelector disk=ssd: the node has no such label",
        "required nodeAffinity, term 1: pool In b: the node has a",
        "required nodeAffinity, term 2: zone Exists: the node has no such label",
        "taint team=a:NoSchedule is not tolerated",
    ]


def test_taint_that_pods_of_a_template_may_still_tolerate_is_told_so() -> None:
    """What stands between a template and its pods may add the toleration."""
    (found,) = closed(a100(taints=[TAINT]))

    assert found.why == [
        "taint team=a:NoSchedule is not tolerated (its pods may still be given the toleration)"
    ]


def test_another_resource_is_told_with_both_names() -> None:
    """A slice is not a card."""
    (node_class,) = classes_of([a100()])

    found, num_open = closed_nodes(unit(gpu_resource="nvidia.com/mig-1g.5gb"), node_class)

    assert num_open == 0
    assert found[0].why == [f"offers {GPU}, and a pod asks for nvidia.com/mig-1g.5gb"]


def test_nodes_of_one_class_are_told_apart() -> None:
    """Labels may differ within a class: some of its nodes are open."""
    (node_class,) = classes_of([a100("x", labels={"pool": "a"}), a100("y"), a100("z")])

    found, num_open = closed_nodes(unit(nodeSelector={"pool": "a"}), node_class)

    assert num_open == 1
    assert [each.nodes for each in found] == [("y", "z")]
