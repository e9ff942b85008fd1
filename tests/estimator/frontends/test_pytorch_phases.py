"""Checkpoints of some layers or operators, activations on the host, companions, evaluations."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.trace import EventKind, Phase, Role, Trace
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import by_role, fault, job, llama, peak

pytestmark = pytest.mark.torch

LAYERS, HIDDEN, TOKENS = 4, 256, 2 * 256


def trained(**training: Any) -> dict[str, Any]:
    """Return a full training of the small Llama, whose activations outweigh its weights."""
    sizes = {"sequenceLength": 256}
    return job(
        llama(),
        training={"precision": "bf16", "useCache": False, "optimizer": {"name": "sgd"}, **training},
        input=sizes,
    )


def test_fewer_checkpoints_keep_more(in_child: InChild) -> None:
    """None, every second layer, each operator's share, every layer: in this order."""
    none, second, operators, full = (
        peak(in_child(children.trace, trained(gradientCheckpointing=mode)))
        for mode in ("none", {"mode": "selective", "every": 2}, "selective", "full")
    )
    assert none > second > full
    assert none > operators > full


def test_every_layer_is_the_same_as_full(in_child: InChild) -> None:
    """`every: 1` says nothing new."""
    full, every = (
        peak(in_child(children.trace, trained(gradientCheckpointing=mode)))
        for mode in ("full", {"mode": "full", "every": 1})
    )
    assert full == every


@pytest.mark.parametrize(
    ("mode", "path"),
    [
        ({"mode": "selective", "policy": "dots"}, "training.gradientCheckpointing.policy"),
        ({"mode": "full", "policy": "op"}, "training.gradientCheckpointing.policy"),
    ],
    ids=str,
)
def test_another_policy_is_refused_with_those_known(
    in_child: InChild, mode: dict[str, Any], path: str
) -> None:
    """A policy decides what is kept: none is guessed."""
    refusal = in_child(children.refusal, trained(gradientCheckpointing=mode))

    assert refusal.kind == "unsupported"
    assert refusal.path == path
    assert "'op'" in refusal.message


def test_activations_on_the_host_are_not_on_the_card(in_child: InChild) -> None:
    """What a layer saves leaves, and comes back for its own backward pass."""
    here, there = (
        in_child(children.trace, trained(activationOffload=offload)) for offload in (False, True)
    )
    assert fault(there) is None
    assert peak(here) - peak(there) > LAYERS * TOKENS * HIDDEN * 2 * 4


TEACHER = {"source": "huggingface", "name": "teacher", "config": llama()["config"]}


def test_a_companion_is_resident_and_not_trained(in_child: InChild) -> None:
    """A frozen copy of the model adds its weights, and its pass without gradients."""
    alone = in_child(children.trace, trained())
    document = trained()
    document["model"]["companions"] = [TEACHER, {**TEACHER, "precision": "bf16"}]

    both = in_child(children.trace, document)

    assert fault(both) is None
    parameters = loaded(alone) // 2
    assert loaded(both) - loaded(alone) == pytest.approx((4 + 2) * parameters, rel=1e-3)


def test_a_companion_nobody_knows_is_named_by_its_place(in_child: InChild) -> None:
    """The second of two."""
    document = trained()
    document["model"]["companions"] = [
        TEACHER,
        {"source": "huggingface", "name": "no/such-model"},
    ]

    refusal = in_child(children.refusal, document)

    assert refusal.path == "model.companions[1]"


def evaluated(**evaluation: Any) -> dict[str, Any]:
    """Return a training that evaluates."""
    asked = {"batchSize": 2, "sequenceLength": 256, **evaluation}
    return trained(evaluation=asked, keepOutputs=False)


def test_collected_logits_are_kept_and_their_growth_is_named(in_child: InChild) -> None:
    """Two batches of logits and the third that joins them."""
    plain = in_child(children.trace, evaluated(batchSize=32))
    collected = in_child(children.trace, evaluated(batchSize=32, collectLogits=True))

    assert peak_in(collected, Phase.EVALUATION) > peak_in(plain, Phase.EVALUATION)
    paths = {note.path for note in collected.unknowns}
    assert "training.evaluation.collectLogits" in paths


def test_an_evaluation_that_generates_fills_a_cache(in_child: InChild) -> None:
    """The cache of a longer text is larger."""
    short, long = (
        in_child(children.trace, evaluated(sequenceLength=64 + new, maxNewTokens=new))
        for new in (8, 2048)
    )
    assert fault(long) is None
    assert peak_in(long, Phase.GENERATION) > peak_in(short, Phase.GENERATION)


def loaded(trace: Trace) -> int:
    """Return the bytes put on the card before the first step."""
    return by_role(trace)[Role.PARAMETER]


def peak_in(trace: Trace, phase: Phase) -> int:
    """Return the most live bytes of *phase*."""
    live = most = 0
    for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        if kind == EventKind.ALLOC:
            live += trace.sizes[tensor]
        elif kind == EventKind.FREE:
            live -= trace.sizes[tensor]
        if trace.place_table[place].phase is phase:
            most = max(most, live)
    return most
