"""float8 training: what is cast, what stays as it was, what a compiler saves."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.trace import GATHERED_FLOAT8, Role
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import by_role, fault, job, llama, peak

pytestmark = pytest.mark.torch

RECIPES = ("tensorwise", "rowwise", "rowwise_with_gw_hp")


def trained(
    float8: dict[str, Any] | None, *, vocabulary: int = 1000, **training: Any
) -> dict[str, Any]:
    """Return a training of the small Llama, in float8 if told so."""
    how = {} if float8 is None else {"float8": float8}
    return job(
        llama(vocab_size=vocabulary),
        training={"precision": "bf16", "useCache": False, **how, **training},
        input={"sequenceLength": 256},
    )


@pytest.mark.parametrize("recipe", RECIPES)
def test_weights_gradients_and_states_stay_as_they_are(in_child: InChild, recipe: str) -> None:
    """Casts are temporary: torchao keeps everything else in high precision."""
    plain = in_child(children.trace, trained(None))

    cast = in_child(children.trace, trained({"recipe": recipe}))

    assert fault(cast) is None
    for role in (Role.PARAMETER, Role.GRADIENT, Role.OPTIMIZER, Role.INPUT):
        assert by_role(cast)[role] == by_role(plain)[role]


def test_a_cast_takes_more_while_it_is_made(in_child: InChild) -> None:
    """Without a compiler two fp32 copies stand beside the input; with one only a byte each."""
    plain, eager = (
        by_role(in_child(children.trace, trained(each)))[Role.TEMPORARY]
        for each in (None, {"recipe": "tensorwise"})
    )
    fused = by_role(in_child(children.trace, trained({"recipe": "tensorwise"}, compile=True)))

    assert eager > plain
    assert fused[Role.TEMPORARY] < eager


def test_full_precision_gradients_need_fewer_casts(in_child: InChild) -> None:
    """`rowwise` casts gradient and input along both sides, `rowwise_with_gw_hp` along one."""
    rows, wide = (
        by_role(in_child(children.trace, trained({"recipe": each})))[Role.TEMPORARY]
        for each in ("rowwise", "rowwise_with_gw_hp")
    )
    assert wide < rows


def test_products_are_seen_by_the_policy_of_checkpoints(in_child: InChild) -> None:
    """Every second product is computed again, float8 or not."""
    kept, again = (
        peak(in_child(children.trace, trained({}, gradientCheckpointing=mode)))
        for mode in ("none", "selective")
    )
    assert again < kept


def test_layers_gathered_in_float8_are_named_in_the_trace(in_child: InChild) -> None:
    """The head is not among them."""
    trace = in_child(children.trace, trained({"recipe": "tensorwise", "allGather": True}))

    names = trace.facts[GATHERED_FLOAT8].split(",")
    assert "q_proj" in names
    assert "down_proj" in names
    assert "lm_head" not in names
    assert GATHERED_FLOAT8 not in in_child(children.trace, trained({})).facts


@pytest.mark.parametrize(
    ("float8", "path"),
    [
        ({"recipe": "mxfp8"}, "training.float8.recipe"),
        ({"recipe": "rowwise", "allGather": True}, "training.float8.allGather"),
    ],
    ids=str,
)
def test_other_recipes_are_refused(in_child: InChild, float8: dict[str, Any], path: str) -> None:
    """What torchao does not do, or is not modelled."""
    refusal = in_child(children.refusal, trained(float8))

    assert (refusal.code, refusal.path) == ("precision", path)


def test_a_compiled_loss_keeps_logits_in_their_own_dtype(in_child: InChild) -> None:
    """Eagerly two fp32 copies more at the least, before other tensors make the peak."""
    logits = 32000 * 2 * 256

    eager, compiled = (
        peak(in_child(children.trace, trained(None, vocabulary=32000, compile=enabled)))
        for enabled in (False, True)
    )

    assert eager - compiled >= 8 * logits
    notes = in_child(children.trace, trained(None, compile=True)).assumptions
    assert any(note.path == "training.compile" for note in notes)
