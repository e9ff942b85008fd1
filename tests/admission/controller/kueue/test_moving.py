"""Terms that lead a job to a flavor: what Kueue compares, and what is written down."""

from __future__ import annotations

from typing import Any

import pytest

from admission.controller.kueue.flavors import Flavor
from admission.controller.kueue.moving import (
    LED,
    MOVES,
    is_built_of,
    led,
    led_terms,
    moves_of,
    place_for,
    terms_for,
    unled,
)
from admission.steer.permission import Place
from admission.steer.terms import Terms
from tests.admission.controller.objects import job, pytorchjob
from tests.builders import GPU

PRODUCT, MEMORY, POOL = f"{GPU}.product", f"{GPU}.memory", "example.com/pool"


def flavor(name: str, **labels: str) -> Flavor:
    """Return a flavor with *labels*; `product`, `memory` and `pool` stand for the whole keys."""
    keys = {"product": PRODUCT, "memory": MEMORY, "pool": POOL}
    return Flavor(name=name, labels={keys[key]: text for key, text in labels.items()})


T4 = flavor("t4", product="T4", pool="shared")
A10 = flavor("a10", product="A10", pool="shared")
A100 = flavor("a100", product="A100", pool="own")
TERMS = Terms(required=({"key": PRODUCT, "operator": "In", "values": ["A10"]},))
PLACES = {"spec.template": TERMS}


def required(*expressions: dict[str, Any]) -> dict[str, Any]:
    """Return a pod spec with one alternative of required affinity."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"nodeAffinity": {key: terms}}}


def test_one_label_opens_all_that_hold_it_and_no_other() -> None:
    """The product, since a person knows it; not the pool, which the small one has too."""
    terms = terms_for((A10, A100), (T4, A10, A100), place=Place.AFFINITY, pod={})

    assert terms is not None
    assert terms.required == ({"key": PRODUCT, "operator": "In", "values": ["A10", "A100"]},)


def test_what_one_label_does_not_tell_apart_all_of_the_best_do() -> None:
    """Each is shared with a flavor that does not hold it."""
    wanted = flavor("wanted", product="A10", pool="own")
    others = (flavor("small", product="T4", pool="own"), flavor("cut", product="A10", pool="cut"))

    terms = terms_for((wanted,), (wanted, *others), place=Place.AFFINITY, pod={})

    assert terms is not None
    assert [each["key"] for each in terms.required] == [POOL, PRODUCT]


@pytest.mark.parametrize("place", [Place.AFFINITY, Place.SELECTOR])
def test_flavors_without_a_difference_are_no_way(place: Place) -> None:
    """One without labels, or with those of the small one."""
    twin = flavor("twin", product="T4", pool="shared")

    assert terms_for((twin,), (T4, twin), place=place, pod={}) is None
    assert terms_for((Flavor(name="bare"),), (T4, Flavor(name="bare")), place=place, pod={}) is None


def test_terms_that_the_jobs_own_close_are_none() -> None:
    """A person chose the pool of the small card."""
    pod = required({"key": POOL, "operator": "In", "values": ["shared"]})

    assert terms_for((A100,), (T4, A100), place=Place.AFFINITY, pod=pod) is None
    assert terms_for((A10,), (T4, A10), place=Place.AFFINITY, pod=pod) is not None


def test_what_flavors_have_no_label_for_is_not_compared() -> None:
    """As Kueue does: an alternative that says nothing of their keys is open to all."""
    pod = required({"key": MEMORY, "operator": "Gt", "values": ["99999"]})

    assert terms_for((A10,), (T4, A10), place=Place.AFFINITY, pod=pod) is not None
    with_memory = flavor("a10", product="A10", memory="23028")
    assert terms_for((with_memory,), (T4, with_memory), place=Place.AFFINITY, pod=pod) is None


def test_a_jobset_gets_a_selector_of_the_best_alone() -> None:
    """A nodeSelector has one value a key."""
    terms = terms_for((A10, A100), (T4, A10, A100), place=Place.SELECTOR, pod={})

    assert terms == Terms(selector={PRODUCT: "A10"})


def test_only_kinds_that_may_change_while_suspended_are_moved() -> None:
    """Of a RayJob or a Pod nothing may."""
    assert place_for(job(1)) is Place.AFFINITY
    assert place_for(pytorchjob(1)) is Place.AFFINITY
    assert place_for({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}) is Place.SELECTOR
    assert place_for({"apiVersion": "ray.io/v1", "kind": "RayJob"}) is Place.NOWHERE
    assert place_for({"apiVersion": "v1", "kind": "Pod"}) is Place.NOWHERE


def test_a_move_is_written_down_on_the_object_and_taken_back_whole() -> None:
    """Kueue restores the annotations of the template, not those of the job."""
    before = job(1)

    after = led(before, PLACES)

    assert led_terms(after) == PLACES
    assert moves_of(after) == 1
    assert "annotations" not in after["spec"]["template"].get("metadata", {})
    assert unled(after)["spec"] == before["spec"]


def test_a_move_that_was_begun_changes_nothing() -> None:
    """Nor does it count again; another one does, and leaves nothing of the first."""
    once = led(job(1), PLACES)
    other = {"spec.template": Terms(required=({"key": POOL, "operator": "In", "values": ["x"]},))}

    assert led(once, PLACES) == once
    twice = led(once, other)
    assert moves_of(twice) == 2
    assert "A10" not in str(twice["spec"])


@pytest.mark.parametrize("text", ["", "[]", "{", '{"spec.template": 1}', "x" * 20_000])
def test_what_is_no_record_is_none(text: str) -> None:
    """Whoever may write the job may write the annotation."""
    made = job(1, notes={LED: text, MOVES: "many"})

    assert led_terms(made) == {}
    assert moves_of(made) == 0
    assert unled(made) == made


def test_a_workload_is_made_of_a_template_or_was_before() -> None:
    """Affinity and selector tell: the rest Kueue compares itself."""
    template = led(job(1), PLACES)["spec"]["template"]

    assert is_built_of(template, template["spec"])
    assert not is_built_of(job(1)["spec"]["template"], template["spec"])
