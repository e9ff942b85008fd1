"""A pod may go to the nodes that the scheduler would let it on, were they empty and healthy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.capacity.eligibility import (
    QUEUE_LABEL,
    Obstacle,
    Reach,
    Stage,
    closing_taints,
    gets_tolerations,
    reach_of,
)
from admission.capacity.named import declared_class
from admission.errors import RequestError
from admission.values import NodeClass, NodeFacts
from tests.builders import GPU, device, node_class, unit

Terms = list[dict[str, Any]]

TAINT = {"key": "team", "value": "vision", "effect": "NoSchedule"}


def required(*terms: object) -> dict[str, Any]:
    """Return an affinity that requires one of *terms*."""
    selector = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return a term of one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def is_open(where: NodeClass, **spec: Any) -> bool:
    """Return whether a pod with these keys may go to *where*."""
    return bool(reach_of(unit(**spec), [where]).reachable)


def test_pod_that_asks_for_nothing_special_may_go_everywhere() -> None:
    """Every class is reachable and nothing is in the way."""
    classes = (node_class("A10"), node_class("T4"))

    assert reach_of(unit(), classes) == Reach(reachable=classes, closed=(), obstacle=None)


def test_class_is_narrowed_to_the_nodes_that_are_open() -> None:
    """One of two nodes matches the selector: the class counts one, and the other is closed."""
    where = node_class("T4", num_nodes=2)
    here, there = (
        NodeFacts(name=name, labels={"zone": zone}) for name, zone in (("n0", "a"), ("n1", "b"))
    )
    mixed = _with_members(where, here, there)

    reach = reach_of(unit(nodeSelector={"zone": "b"}), [mixed])

    assert reach.reachable == (_with_members(where, there),)
    assert reach.closed == (_with_members(where, here),)
    assert reach.obstacle == Obstacle(stage=Stage.SELECTOR, text="nodeSelector zone=b matches none")


def test_class_with_fewer_gpus_than_the_pod_asks_for_is_neither_open_nor_closed() -> None:
    """The pod's own count decides, not the container's; such a node can never hold it."""
    reach = reach_of(unit(gpus=1, pod_gpus=8), [node_class(gpus=4)])

    assert (reach.reachable, reach.closed) == ((), ())
    assert reach.obstacle is not None
    assert reach.obstacle.stage is Stage.COUNT


def test_class_of_another_resource_is_not_eligible() -> None:
    """A pod that asks for MIG slices does not go to whole cards."""
    reach = reach_of(unit(gpu_resource="nvidia.com/mig-1g.10gb"), [node_class()])

    assert (reach.reachable, reach.closed) == ((), ())


def test_declared_card_is_open_to_every_pod() -> None:
    """`--gpu` names the card: no node is there whose labels could say no."""
    named = declared_class(device())

    reach = reach_of(unit(gpus=16, nodeSelector={"zone": "z"}), [named])

    assert reach.reachable == (named,)


def test_obstacle_is_that_of_the_nodes_that_came_nearest() -> None:
    """A taint on the right card says more than that other cards are of another product."""
    classes = [node_class("A10"), node_class("T4", taints=[TAINT])]

    reach = reach_of(unit(nodeSelector={f"{GPU}.product": "T4"}), classes)

    assert reach.obstacle == Obstacle(
        stage=Stage.TAINT, text="taint team=vision:NoSchedule is not tolerated"
    )


@pytest.mark.parametrize(
    ("toleration", "passes"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "team", "value": "vision"}, True),
        ({"key": "team", "operator": "Equal", "value": "vision"}, True),
        ({"key": "team", "operator": "Equal", "value": "speech"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "team", "operator": "Gt", "value": "0"}, False),
    ],
)
def test_toleration_opens_a_tainted_node(toleration: dict[str, Any], passes: bool) -> None:
    """Key, operator, value and effect all have to agree; an empty one stands for any."""
    assert is_open(node_class(taints=[TAINT]), tolerations=[toleration]) is passes


@pytest.mark.parametrize("resource", [GPU, "nvidia.com/mig-1g.10gb"])
def test_taint_keyed_by_the_requested_resource_counts_as_tolerated(resource: str) -> None:
    """An admission plugin adds the toleration to Pods, and the Job never shows it."""
    taint = {"key": resource, "value": "present", "effect": "NoSchedule"}
    where = replace(node_class(taints=[taint]), gpu_resource=resource)

    assert reach_of(unit(gpu_resource=resource), [where]).reachable == (where,)


def test_taint_keyed_by_another_resource_closes_the_node() -> None:
    """The plugin adds a toleration for what the pod asks for, and for nothing else."""
    taint = {"key": "nvidia.com/mig-1g.10gb", "effect": "NoSchedule"}

    assert not is_open(node_class(taints=[taint]))


def test_template_may_still_be_given_the_toleration_that_a_node_needs() -> None:
    """Its nodes are closed, and named as those that a toleration alone would open."""
    tainted = node_class("A100", taints=[TAINT])
    elsewhere = node_class("A100", taints=[TAINT], labels={"zone": "b"})
    here = _with_members(tainted, NodeFacts(name="n", labels={"zone": "a"}, taints=(TAINT,)))

    reach = reach_of(unit(nodeSelector={"zone": "a"}), [here, elsewhere])

    assert (reach.reachable, reach.tainted) == ((), (here,))
    assert reach.closed == (here, elsewhere)


@pytest.mark.parametrize(
    ("labels", "spec", "gets"),
    [
        ({}, {}, False),
        ({"app": "a"}, {}, False),
        ({QUEUE_LABEL: "team"}, {}, True),
        ({}, {"runtimeClassName": "nvidia"}, True),
    ],
)
def test_pod_is_what_it_is_unless_a_class_or_a_queue_is_still_to_come(
    labels: dict[str, str], spec: dict[str, Any], gets: bool
) -> None:
    """RuntimeClasses and Kueue's flavours add tolerations to Pods."""
    pod = replace(unit(**spec), template="", pod_metadata={"labels": labels})
    where = node_class(taints=[TAINT])

    reach = reach_of(pod, [where])

    assert gets_tolerations(pod) is gets
    assert reach.tainted == ((where,) if gets else ())


def test_every_taint_that_is_not_tolerated_is_named() -> None:
    """Tolerating one of two opens nothing."""
    taints = [TAINT, {"key": "spot", "effect": "NoExecute"}, {"key": GPU, "effect": "NoSchedule"}]
    where = node_class(taints=taints)

    assert closing_taints(unit(), where) == ("team=vision:NoSchedule", "spot:NoExecute")


@pytest.mark.parametrize(
    ("effect", "passes"), [("NoSchedule", False), ("NoExecute", False), ("PreferNoSchedule", True)]
)
def test_only_taints_that_forbid_close_a_node(effect: str, passes: bool) -> None:
    """A preference keeps nobody away."""
    assert is_open(node_class(taints=[{"key": "k", "effect": effect}])) is passes


@pytest.mark.parametrize(
    ("term", "passes"),
    [
        (expression("zone", "In", "a", "b"), True),
        (expression("zone", "In", "b"), False),
        (expression("zone", "NotIn", "b"), True),
        (expression("zone", "NotIn", "a"), False),
        (expression("rack", "NotIn", "a"), True),
        (expression("zone", "Exists"), True),
        (expression("rack", "Exists"), False),
        (expression("rack", "DoesNotExist"), True),
        (expression("zone", "DoesNotExist"), False),
        (expression("mib", "Gt", "15359"), True),
        (expression("mib", "Gt", "15360"), False),
        (expression("mib", "Lt", "15361"), True),
        (expression("mib", "Lt", "15360"), False),
        (expression("rack", "Gt", "0"), False),
        (expression("rack", "Lt", "0"), False),
        (expression("zone", "Gt", "0"), False),
        (expression("mib", "Gt", "many"), False),
        (expression("zone", "Near", "a"), False),
        ({}, False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["t4-0"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["t4-9"]}]}, False),
        (
            {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["t4-0"]}]},
            False,
        ),
    ],
)
def test_required_affinity_follows_the_scheduler(term: dict[str, Any], passes: bool) -> None:
    """Each operator as the scheduler has it: Gt and Lt are strict and need two integers."""
    where = node_class("T4", labels={"zone": "a", "mib": "15360"})

    assert is_open(where, affinity=required(term)) is passes


def test_terms_are_alternatives_and_expressions_of_one_term_are_not() -> None:
    """Terms are ORed, the expressions of a term are ANDed."""
    where = node_class(labels={"zone": "a"})
    yes, no = expression("zone", "Exists"), expression("rack", "Exists")
    both = {"matchExpressions": yes["matchExpressions"] + no["matchExpressions"]}

    assert is_open(where, affinity=required(no, yes))
    assert not is_open(where, affinity=required(both))
    assert not is_open(where, affinity=required())


def test_selector_and_affinity_both_have_to_match() -> None:
    """A matching affinity does not make up for a nodeSelector that does not match."""
    where = node_class(labels={"zone": "a"})
    affinity = required(expression("zone", "Exists"))

    assert not is_open(where, affinity=affinity, nodeSelector={"zone": "b"})


def test_preferred_affinity_closes_nothing() -> None:
    """A wish is no requirement."""
    wish = {"weight": 1, "preference": expression("zone", "In", "b")}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}

    assert is_open(node_class(), affinity=affinity)


def test_pod_bound_to_a_node_goes_there_only() -> None:
    """nodeName leaves the scheduler out."""
    where = node_class("T4", num_nodes=2)

    (found,) = reach_of(unit(nodeName="t4-1"), [where]).reachable

    assert found.nodes == ("t4-1",)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"nodeSelector": ["a"]}, "spec.template.spec.nodeSelector"),
        ({"tolerations": {"key": "a"}}, "spec.template.spec.tolerations"),
        ({"tolerations": ["a"]}, "spec.template.spec.tolerations[0]"),
        ({"affinity": "near"}, "spec.template.spec.affinity"),
        (
            {"affinity": required("a")},
            "spec.template.spec.affinity.nodeAffinity."
            "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]",
        ),
    ],
)
def test_malformed_pod_spec_is_the_requests_mistake(spec: dict[str, Any], path: str) -> None:
    """Kinds with loose schemas reach us unchecked: the field is named, nothing breaks."""
    with pytest.raises(RequestError) as caught:
        reach_of(unit(**spec), [node_class()])

    assert caught.value.message.startswith(f"{path}: ")


KEYS = st.sampled_from(["a", "b"])
VALUES = st.sampled_from(["1", "2", "x"])
LABELS = st.dictionaries(KEYS, VALUES)
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])


@st.composite
def expressions(draw: st.DrawFn) -> dict[str, Any]:
    """One requirement, with as many values as its operator takes."""
    operator = draw(OPERATORS)
    few = {"In": (1, 2), "NotIn": (1, 2), "Gt": (1, 1), "Lt": (1, 1)}.get(operator, (0, 0))
    values = draw(st.lists(VALUES, min_size=few[0], max_size=few[1]))
    return {"key": draw(KEYS), "operator": operator, "values": values}


TERMS = st.lists(
    st.fixed_dictionaries({"matchExpressions": st.lists(expressions(), max_size=2)}), max_size=3
)


@given(terms=TERMS, labels=LABELS, selector=st.dictionaries(KEYS, VALUES, max_size=1))
def test_eligibility_agrees_with_a_plain_reading_of_the_rules(
    terms: Terms, labels: dict[str, str], selector: dict[str, str]
) -> None:
    """Whatever the terms, labels and selector, the answer is that of an evaluator of its own."""
    where = _with_members(node_class(), NodeFacts(name="n", labels=labels))

    found = is_open(where, affinity=required(*terms), nodeSelector=selector)

    allowed_by_terms = False
    for term in terms:
        checks = [_plain_check(each, labels) for each in term["matchExpressions"]]
        allowed_by_terms = allowed_by_terms or (bool(checks) and all(checks))
    assert found is (allowed_by_terms and selector.items() <= labels.items())


def _plain_check(requirement: dict[str, Any], labels: dict[str, str]) -> bool:
    """Evaluate one requirement from the words of the API reference."""
    value, values = labels.get(requirement["key"]), requirement["values"]
    if requirement["operator"] in ("Gt", "Lt"):
        if value is None or not (value.isdigit() and values[0].isdigit()):
            return False
        difference = int(value) - int(values[0])
        return difference > 0 if requirement["operator"] == "Gt" else difference < 0
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[requirement["operator"]]


def _with_members(where: NodeClass, *members: NodeFacts) -> NodeClass:
    """Return *where* with other nodes."""
    return replace(
        where,
        count=len(members),
        nodes=tuple(member.name for member in members),
        labels=members[0].labels,
        taints=members[0].taints,
        members=members,
    )
