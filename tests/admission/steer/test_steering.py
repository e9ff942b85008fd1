"""Which cards pods are led to, and how what a person wrote is kept."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from admission.codes import Steer, Verdict
from admission.steer.notes import VERDICT
from admission.steer.terms import RECORD
from tests.admission.steer.scene import (
    A10,
    A10_RESERVATION,
    A100,
    A100_80,
    MEMORY,
    PRODUCT,
    T4,
    Outcome,
    Scene,
    gt,
    lt,
    node_affinity,
    nodes,
    preferred,
)
from tests.admission.workloads.objects import OBJECTS
from tests.builders import GPU, gpu_labels, node

NEED = 20_000
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def job(**spec: Any) -> dict[str, Any]:
    """Return a Job; *spec* are further keys of its pod spec."""
    obj = deepcopy(OBJECTS["Job"])
    obj["spec"]["template"]["spec"] |= spec
    return obj


def affinity_of(outcome: Outcome) -> dict[str, Any]:
    """Return the node affinity of the Job's pods."""
    found: dict[str, Any] = outcome.patched["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    return found


def terms_of(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the alternatives of the required affinity."""
    found: list[dict[str, Any]] = affinity_of(outcome)[REQUIRED]["nodeSelectorTerms"]
    return found


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """Return an affinity of these alternatives."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def test_threshold_is_the_need_and_never_the_nominal_size() -> None:
    """20,000 MiB on an A10 that has 23,028: the next card of 21,000 would do as well."""
    outcome = Scene(need_mib=NEED).steered(job())

    assert terms_of(outcome) == [{"matchExpressions": [gt(NEED + A10_RESERVATION - 1)]}]


def test_job_that_may_land_on_a_small_card_fits_once_it_is_required_elsewhere() -> None:
    """The verdict is that of what the pods can still reach."""
    hard, soft = (Scene(steer=steer).steered(job()) for steer in (Steer.REQUIRED, Steer.PREFERRED))

    assert (hard.verdict, soft.verdict) == (Verdict.FITS, Verdict.TIGHT)
    names = [found.node_class.name for found in hard.units[0].classes]
    assert T4[0] not in names
    assert A10[0] in names


def test_preferred_leads_to_cards_that_hold_it_the_smallest_first() -> None:
    """An A10 counts in all three tiers, the largest card in the last, a T4 in none."""
    over = gt(NEED + A10_RESERVATION - 1)

    outcome = Scene(steer=Steer.PREFERRED).steered(job())

    assert affinity_of(outcome) == {
        PREFERRED: preferred((100, [over, lt(A100[1])]), (50, [over, lt(A100_80[1])]), (25, [over]))
    }


def test_cards_known_not_to_hold_it_raise_the_threshold() -> None:
    """An A10 that pods share by time would pass by its label, and keeps no memory apart."""
    labels = gpu_labels(
        product=A10[0], memory=str(A10[1]), compute=A10[2], sharing_strategy="time-slicing"
    )
    classes = [*nodes((A100,)), node("shared", labels=labels)]

    outcome = Scene(nodes=classes).steered(job())

    assert terms_of(outcome) == [{"matchExpressions": [gt(A10[1])]}]
    assert outcome.verdict is Verdict.FITS


def test_every_alternative_of_a_person_gets_the_expression() -> None:
    """They are ORed; one that matches nothing stays as it is."""
    zones = [{"key": "zone", "operator": "In", "values": [zone]} for zone in "ab"]
    mine: list[dict[str, Any]] = [
        *({"matchExpressions": [zone]} for zone in zones),
        {},
        {"matchFields": []},
    ]
    mine.append({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}]})
    classes = nodes()
    for one in classes:
        one["metadata"]["labels"]["zone"] = "a"

    outcome = Scene(nodes=classes).steered(job(affinity=required(*mine)))

    over = gt(NEED + A10_RESERVATION - 1)
    assert terms_of(outcome) == [
        {"matchExpressions": [zones[0], over]},
        {"matchExpressions": [zones[1], over]},
        {},
        {"matchFields": []},
        {**mine[4], "matchExpressions": [over]},
    ]
    assert [step["path"].rpartition("/")[2] for step in outcome.placed()][:2] == ["-", "-"]


@pytest.mark.parametrize(
    "own",
    [
        {"nodeSelector": {PRODUCT: A10[0]}},
        {"nodeName": A10[0].lower()},
        {
            "affinity": required(
                {"matchExpressions": [{"key": PRODUCT, "operator": "In", "values": [A10[0]]}]}
            )
        },
    ],
)
def test_person_who_chose_the_card_is_not_contradicted(own: dict[str, Any]) -> None:
    """Their terms leave one kind of card: nothing is added."""
    outcome = Scene().steered(job(**own))

    assert outcome.placed() == []
    assert RECORD not in outcome.patched["spec"]["template"]["metadata"]["annotations"]


def test_cluster_with_one_kind_of_card_is_ready_for_a_smaller_one() -> None:
    """Nobody chose it: a pool that is added later must not get the job."""
    outcome = Scene(nodes=nodes((A10,))).steered(job())

    assert (
        affinity_of(outcome) == node_affinity([gt(NEED + A10_RESERVATION - 1)], [])["nodeAffinity"]
    )


def test_preferred_terms_of_a_person_stay_first() -> None:
    """Ours are appended, with weights beside theirs."""
    mine = {"weight": 7, "preference": {"matchExpressions": [gt(1)]}}
    affinity = {"nodeAffinity": {PREFERRED: [mine]}, "podAntiAffinity": {}}

    outcome = Scene().steered(job(affinity=affinity))

    assert affinity_of(outcome)[PREFERRED] == [
        mine,
        *preferred((100, [lt(A100[1])]), (50, [lt(A100_80[1])])),
    ]
    assert outcome.patched["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"] == {}


@pytest.mark.parametrize("steer", [Steer.REQUIRED, Steer.PREFERRED])
def test_nodes_without_the_label_are_told_by_product_and_never_required(steer: Steer) -> None:
    """An autoscaler's template of a node has no labels: a requirement would keep it at zero."""
    scene = Scene(steer=steer, nodes=nodes(has_memory=False))

    found = affinity_of(scene.steered(job()))

    tiers = [{"key": PRODUCT, "operator": "In", "values": names} for names in (
        [A10[0]],
        sorted([A10[0], A100[0]]),
        sorted([A10[0], A100[0], A100_80[0]]),
    )]  # fmt: skip
    assert found == {
        PREFERRED: preferred(
            (100, [tiers[2], tiers[0]]), (50, [tiers[2], tiers[1]]), (25, [tiers[2]])
        )
    }


def test_one_card_without_the_label_makes_products_the_requirement() -> None:
    """A missing label never matches `Gt`: the card would be lost."""
    classes = [*nodes((T4, A10)), *nodes((A100,), has_memory=False)]

    outcome = Scene(nodes=classes).steered(job())

    names = {"key": PRODUCT, "operator": "In", "values": [A10[0], A100[0]]}
    assert terms_of(outcome) == [{"matchExpressions": [names]}]
    assert {found.node_class.name for found in outcome.units[0].classes} == {A10[0], A100[0]}


def test_label_in_bytes_is_not_compared() -> None:
    """Old GPU feature discovery wrote bytes: every one of them is more than any MiB."""
    labels = gpu_labels(product=A10[0], memory=str(23028 << 20), compute=A10[2])

    outcome = Scene(nodes=[*nodes((T4, A100)), node("old", labels=labels)]).steered(job())

    assert terms_of(outcome)[0]["matchExpressions"][0]["key"] == PRODUCT


def test_large_card_that_gives_a_part_is_kept_out_by_its_product() -> None:
    """Its label says 81,920 MiB and a client of MPS gets an eighth."""
    labels = gpu_labels(
        product=f"{A100_80[0]}-SHARED", memory="81920", compute=(8, 0), sharing_strategy="mps",
        replicas="8",
    )  # fmt: skip
    shared = node("shared", labels=labels, resources={GPU: "64"})

    outcome = Scene(nodes=[*nodes((T4, A10)), shared]).steered(job())

    expressions = terms_of(outcome)[0]["matchExpressions"]
    assert expressions[0] == gt(NEED + A10_RESERVATION - 1)
    assert expressions[1:] == [
        {"key": PRODUCT, "operator": "NotIn", "values": [f"{A100_80[0]}-SHARED"]}
    ]
    assert outcome.verdict is Verdict.FITS


def test_slices_are_told_by_their_own_label() -> None:
    """The card's memory says nothing about a slice of it."""
    slices = []
    for name, card, mib in (("small", A100, 4864), ("large", A100_80, 9728)):
        labels = gpu_labels(product=card[0], memory=str(card[1]), compute=(8, 0))
        labels["nvidia.com/mig-1g.x.memory"] = str(mib)
        labels["nvidia.com/mig-1g.x.product"] = f"{card[0]}-MIG-1g.x"
        slices.append(node(name, labels=labels, resources={"nvidia.com/mig-1g.x": "7"}))
    obj = job()
    container = obj["spec"]["template"]["spec"]["containers"][1]
    container["resources"]["limits"] = {"nvidia.com/mig-1g.x": 1}

    outcome = Scene(nodes=slices, need_mib=6000).steered(obj)

    (expression,) = terms_of(outcome)[0]["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("nvidia.com/mig-1g.x.memory", "Gt")


@pytest.mark.parametrize("verdict", [Verdict.OOM, Verdict.UNKNOWN, Verdict.SKIPPED])
def test_nothing_is_steered_without_a_verdict_that_holds(verdict: Verdict) -> None:
    """What does not fit, or is not known, is led nowhere."""
    assert Scene(verdict=verdict).steered(job()).placed() == []


def test_job_that_is_too_large_is_noted_where_it_is_let_in() -> None:
    """In mode warn its pods can be told by their annotation."""
    outcome = Scene(need_mib=200_000).steered(job())

    assert outcome.placed() == []
    assert outcome.patched["metadata"]["annotations"][VERDICT] == "oom"


def test_where_no_card_surely_holds_it_those_that_may_are_chosen_by_the_least() -> None:
    """Between `least` and `enough` an A10 may do, a T4 never."""
    outcome = Scene(need_mib=90_000, least_mib=NEED).steered(job())

    assert outcome.verdict is Verdict.TIGHT
    assert terms_of(outcome) == [{"matchExpressions": [gt(NEED + A10_RESERVATION - 1)]}]


def test_steering_off_still_notes_what_was_found() -> None:
    """The label says how hard to steer, not whether to look."""
    outcome = Scene(steer=Steer.OFF).steered(job())

    assert outcome.placed() == []
    assert VERDICT in outcome.patched["spec"]["template"]["metadata"]["annotations"]


def test_largest_need_of_a_pod_decides() -> None:
    """Two containers on GPUs are on one node, whose cards are alike."""
    obj = job()
    containers = obj["spec"]["template"]["spec"]["containers"]
    containers.append({**deepcopy(containers[1]), "name": "second"})
    for index, name in ((1, "small"), (2, "large")):
        containers[index]["name"] = name
    small, large = Scene(need_mib=1000), Scene(need_mib=30_000)
    units = (*small.steered(obj).units[:1], *large.steered(obj).units[1:])
    assert [unit.unit.container for unit in units] == ["small", "large"]

    scene = Scene(need_mib=30_000)
    outcome = scene.steered(obj)

    assert terms_of(outcome) == [{"matchExpressions": [gt(30_000 + 625 - 1)]}]
    assert [path for path in outcome.patch if "terminationMessagePolicy" in path["path"]] != []


def test_roles_have_thresholds_of_their_own() -> None:
    """A chief that needs more goes to larger cards than its workers."""
    obj = OBJECTS["PyTorchJob"]

    outcome = Scene(needs={"Master": 30_000, "Worker": NEED}).steered(obj)

    over = {
        role: body["template"]["spec"]["affinity"]["nodeAffinity"][REQUIRED]
        for role, body in outcome.patched["spec"]["pytorchReplicaSpecs"].items()
    }
    assert over["Master"]["nodeSelectorTerms"] == [{"matchExpressions": [gt(30_000 + 625 - 1)]}]
    assert over["Worker"]["nodeSelectorTerms"] == [
        {"matchExpressions": [gt(NEED + A10_RESERVATION - 1)]}
    ]


def test_second_run_changes_nothing() -> None:
    """The API server may ask again after other webhooks."""
    first = Scene().steered(job())

    assert Scene().steered(first.patched).patch == []


def test_terms_of_an_earlier_need_are_replaced_and_those_of_a_person_stay() -> None:
    """Theirs may look like ours: only what we wrote down is taken out."""
    mine = {"matchExpressions": [gt(1000), {"key": GPU + ".family", "operator": "Exists"}]}
    classes = nodes()
    for one in classes:
        one["metadata"]["labels"][f"{GPU}.family"] = "any"
    first = Scene(nodes=classes).steered(job(affinity=required(mine)))

    second = Scene(nodes=classes, need_mib=30_000).steered(first.patched)

    assert terms_of(second) == [
        {"matchExpressions": [*mine["matchExpressions"], gt(30_000 + 625 - 1)]}
    ]
    assert not any(step["op"] == "remove" for step in second.placed() if "required" in step["path"])


def test_terms_leave_without_a_trace_where_steering_is_switched_off() -> None:
    """What we made is taken away with what we put in."""
    first = Scene().steered(job())

    second = Scene(steer=Steer.OFF).steered(first.patched)

    assert second.patched["spec"]["template"]["spec"].get("affinity") is None
    assert RECORD not in second.patched["spec"]["template"]["metadata"]["annotations"]


def test_record_that_is_no_record_is_ignored() -> None:
    """Whoever writes the object can write the annotation."""
    for text in ("{", "7", '{"required": 1}', '{"selector": []}', "x" * 20_000):
        obj = job()
        obj["spec"]["template"]["metadata"] = {"annotations": {RECORD: text}}

        assert len(terms_of(Scene().steered(obj))) == 1


def test_termination_messages_can_be_switched_off() -> None:
    """It is the only thing that is changed in a container."""
    with_them, without = (
        Scene(termination_messages=value).steered(job()).patched for value in (True, False)
    )

    containers = [obj["spec"]["template"]["spec"]["containers"] for obj in (with_them, without)]
    assert containers[1] == job()["spec"]["template"]["spec"]["containers"]
    assert containers[0] == [
        containers[1][0],
        {**containers[1][1], "terminationMessagePolicy": "FallbackToLogsOnError"},
    ]


@pytest.mark.parametrize(("policy", "expected"), [("File", "FallbackToLogsOnError"), ("x", "x")])
def test_default_of_the_api_server_is_no_choice(policy: str, expected: str) -> None:
    """It fills in `File` before it asks us."""
    obj = job()
    obj["spec"]["template"]["spec"]["containers"][1]["terminationMessagePolicy"] = policy

    patched = Scene().steered(obj).patched

    container = patched["spec"]["template"]["spec"]["containers"][1]
    assert container["terminationMessagePolicy"] == expected


def test_label_of_memory_is_the_one_that_is_documented() -> None:
    """GPU feature discovery's."""
    assert MEMORY == "nvidia.com/gpu.memory"
