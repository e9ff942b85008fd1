"""Whatever people wrote: a patch applies, is made once, takes nothing away and loses no card."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.capacity.eligibility import reach_of
from admission.codes import Steer, Verdict
from admission.errors import PatchError
from admission.steer.checking import checked
from admission.steer.operations import operations
from admission.steer.places import changed, place_of
from admission.steer.terms import RECORD
from admission.steer.writing import unsteered
from admission.workloads import read_workload
from tests.admission.steer.scene import A10, A100, A100_80, MEMORY, PRODUCT, T4, Scene, gt, nodes
from tests.admission.workloads.objects import OBJECTS

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CARDS = (T4, A10, A100, A100_80)

expressions = st.one_of(
    st.sampled_from([0, 10_000, 20_000, 20_540, 30_000]).map(gt),
    st.just({"key": MEMORY, "operator": "Lt", "values": ["50000"]}),
    st.builds(
        lambda names, operator: {"key": PRODUCT, "operator": operator, "values": names},
        st.lists(st.sampled_from([card[0] for card in CARDS]), min_size=1, max_size=4),
        st.sampled_from(["In", "NotIn"]),
    ),
    st.just({"key": "zone", "operator": "DoesNotExist"}),
)
terms = st.one_of(
    st.just({}),
    st.builds(lambda found: {"matchExpressions": found}, st.lists(expressions, max_size=3)),
    st.just({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}]}),
)
required = st.one_of(
    st.none(),
    st.builds(lambda found: {"nodeSelectorTerms": found}, st.lists(terms, min_size=1, max_size=3)),
)
preferred = st.one_of(
    st.none(),
    st.lists(
        st.builds(
            lambda weight, found: {"weight": weight, "preference": {"matchExpressions": found}},
            st.integers(min_value=1, max_value=100),
            st.lists(expressions, min_size=1, max_size=2),
        ),
        max_size=3,
    ),
)
affinities = st.one_of(
    st.none(),
    st.just({}),
    st.builds(
        lambda hard, soft: {
            "nodeAffinity": {
                key: value
                for key, value in ((REQUIRED, hard), (PREFERRED, soft))
                if value is not None
            },
            "podAffinity": {},
        },
        required,
        preferred,
    ),
)
notes_written: st.SearchStrategy[object] = st.one_of(
    st.none(), st.just({}), st.dictionaries(st.sampled_from(["a/b", "c~d", RECORD]), st.text())
)
needs = st.sampled_from([1000, 14_000, 20_000, 22_400, 39_000, 79_000, 200_000])
steers = st.sampled_from(list(Steer))


def job(affinity: object, notes: object) -> dict[str, Any]:
    """Return a Job whose pods have this affinity and whose template has these annotations."""
    obj = deepcopy(OBJECTS["Job"])
    obj["spec"]["template"]["spec"]["affinity"] = affinity
    obj["spec"]["template"]["metadata"] = {"annotations": notes}
    return obj


def pod_of(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the pod spec of a Job."""
    pod: dict[str, Any] = obj["spec"]["template"]["spec"]
    return pod


def own_terms(obj: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return the expressions of each alternative, and the preferred terms."""
    affinity = (pod_of(obj).get("affinity") or {}).get("nodeAffinity") or {}
    alternatives = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    return [term.get("matchExpressions") or [] for term in alternatives], list(
        affinity.get(PREFERRED) or []
    )


@settings(max_examples=300, deadline=None)
@given(affinity=affinities, notes=notes_written, need=needs, steer=steers)
def test_steering_keeps_what_people_wrote(
    affinity: object, notes: object, need: int, steer: Steer
) -> None:
    """The patch applies (the scene tries it), leaves nothing to do, and only ever adds."""
    obj = job(affinity, notes)
    scene = Scene(need_mib=need, steer=steer)

    outcome = scene.steered(obj)

    assert scene.steered(outcome.patched).patch == []
    before, after = own_terms(obj), own_terms(outcome.patched)
    for mine, theirs in zip(before[0], after[0], strict=False):
        assert theirs[: len(mine)] == mine
    assert not before[0] or len(before[0]) == len(after[0])
    assert after[1][: len(before[1])] == before[1]
    bare = unsteered(outcome.patched)
    assert own_terms(dict(bare)) == before


@settings(max_examples=300, deadline=None)
@given(affinity=affinities, need=needs, steer=steers, labelled=st.booleans())
def test_steering_loses_no_card_that_holds_the_job(
    affinity: object, need: int, steer: Steer, labelled: bool
) -> None:
    """Every node that held it before is open to it after; no other is opened."""
    obj = job(affinity, None)
    scene = Scene(need_mib=need, steer=steer, nodes=nodes(has_memory=labelled))

    outcome = scene.steered(obj)

    (unit,) = read_workload(outcome.patched).units
    (asked,) = read_workload(obj).units
    open_before, open_after = (
        {name for found in reach_of(one, scene.classes).reachable for name in found.nodes}
        for one in (asked, unit)
    )
    (plain,) = Scene(need_mib=need, steer=Steer.OFF, nodes=scene.nodes).steered(obj).units
    holding = {
        name
        for found in plain.classes
        if found.verdict is Verdict.FITS
        for name in found.node_class.nodes
    }
    assert holding <= open_after <= open_before


@settings(max_examples=200, deadline=None)
@given(first=affinities, need=needs, other=needs, steer=steers)
def test_later_need_gives_what_it_would_have_given_at_once(
    first: object, need: int, other: int, steer: Steer
) -> None:
    """No trace of an earlier answer is left in the pod spec."""
    obj = job(first, None)
    at_once = Scene(need_mib=other, steer=steer).steered(obj).patched

    later = Scene(need_mib=other).steered(Scene(need_mib=need, steer=steer).steered(obj).patched)
    later = Scene(need_mib=other, steer=steer).steered(later.patched)

    assert own_terms(later.patched) == own_terms(at_once)


def test_patch_that_does_not_apply_is_not_sent() -> None:
    """It would fail the person's request though the policy is to ignore us."""
    with pytest.raises(PatchError, match="does not apply"):
        checked({}, [{"op": "add", "path": "/a/b", "value": 1}], templates=(), containers=())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.template.spec.nodeName", "x"),
        ("spec.template.spec.containers[1].image", "evil"),
        ("spec.template.spec.affinity.nodeAffinity", {REQUIRED: {"nodeSelectorTerms": [{}]}}),
        ("spec.template.spec.affinity.podAffinity", {"x": 1}),
        ("metadata.labels.x", "y"),
        ("spec.template.metadata.annotations.x", "y"),
        ("spec.suspend", True),
        ("spec.template.spec.containers[0].terminationMessagePolicy", "FallbackToLogsOnError"),
    ],
)
def test_patch_that_changes_anything_else_is_not_sent(path: str, value: object) -> None:
    """Whatever the reason: a fault of ours must not reach anybody's object."""
    obj = deepcopy(OBJECTS["Job"])
    place = place_of(path)
    assert place is not None
    patch = operations(obj, changed(obj, place, value))

    with pytest.raises(PatchError, match="more than it may"):
        checked(
            obj,
            patch,
            templates=(("spec", "template"),),
            containers=(("spec", "template", "spec", "containers", 1),),
        )
