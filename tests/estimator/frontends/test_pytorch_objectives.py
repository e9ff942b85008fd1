"""Preferences, rewards and teachers: how many texts, which other model, what of the logits."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.trace import Role, Trace
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import by_role, fault, job, llama, peak

pytestmark = pytest.mark.torch

TOKENS, VOCABULARY = 64, 1000
TEACHER = {
    "source": "huggingface",
    "name": "teacher",
    "config": llama(num_hidden_layers=2)["config"],
    "precision": "bf16",
}
LORA: dict[str, Any] = {"type": "lora", "targetModules": ["q_proj"]}


def trained(objective: str, *, companions: tuple[Any, ...] = (), **rest: Any) -> dict[str, Any]:
    """Return a training of the small Llama for *objective*."""
    training = {"precision": "bf16", **rest.pop("training", {})}
    model = {**llama(), "companions": list(companions)}
    return job(
        model,
        objective=objective,
        training=training,
        input={"sequenceLength": TOKENS},
        **rest,
    )


def weights(trace: Trace) -> int:
    """Return the bytes of all parameters."""
    return by_role(trace)[Role.PARAMETER]


@pytest.mark.parametrize("adapter", [None, LORA], ids=["full", "lora"])
@pytest.mark.parametrize("objective", ["dpo", "orpo", "kto", "reward", "distill"])
def test_each_objective_runs_whole_steps(
    in_child: InChild, objective: str, adapter: dict[str, Any] | None
) -> None:
    """Every tensor that is freed was there, and something is trained."""
    companions = (TEACHER,) if objective == "distill" else ()
    rest: dict[str, Any] = {} if adapter is None else {"adapter": adapter}

    trace = in_child(children.trace, trained(objective, companions=companions, **rest))

    assert fault(trace) is None
    assert by_role(trace)[Role.GRADIENT] > 0


@pytest.mark.parametrize(
    ("objective", "texts"), [("dpo", 2), ("orpo", 2), ("reward", 2), ("kto", 1)]
)
def test_preferences_come_in_pairs(in_child: InChild, objective: str, texts: int) -> None:
    """Chosen and rejected are one batch of twice the texts; KTO's are single."""
    plain = in_child(children.trace, trained("sft"))
    trace = in_child(children.trace, trained(objective))

    pairs = by_role(trace)[Role.INPUT] / by_role(plain)[Role.INPUT]

    # A classifier's label is a number a text, not one a token.
    assert pairs == pytest.approx(texts, rel=0.5 if objective == "reward" else 1e-9)


@pytest.mark.parametrize("objective", ["dpo", "kto"])
def test_the_reference_is_a_copy_unless_an_adapter_can_be_off(
    in_child: InChild, objective: str
) -> None:
    """TRL loads the model again; with an adapter the base is the reference."""
    plain, adapted = (
        weights(in_child(children.trace, each))
        for each in (trained("sft"), trained("sft", adapter=LORA))
    )
    copied = in_child(children.trace, trained(objective))
    off = in_child(children.trace, trained(objective, adapter=LORA))

    assert weights(copied) == 2 * plain
    assert weights(off) == adapted
    assert any(note.path == "model.companions" for note in copied.assumptions)


def test_the_first_companion_is_the_reference(in_child: InChild) -> None:
    """Named, no copy is made, and it is there once."""
    plain = weights(in_child(children.trace, trained("sft")))
    beside = weights(in_child(children.trace, trained("sft", companions=(TEACHER,))))

    named = in_child(children.trace, trained("dpo", companions=(TEACHER,)))

    assert weights(named) == beside > plain


def test_orpo_has_no_reference(in_child: InChild) -> None:
    """Odds are of one model."""
    orpo, dpo = (in_child(children.trace, trained(each)) for each in ("orpo", "dpo"))

    assert 2 * weights(orpo) == weights(dpo)
    assert peak(orpo) < peak(dpo)


def test_a_reward_model_has_one_label_and_no_head_over_the_vocabulary(in_child: InChild) -> None:
    """The head is 256 numbers."""
    plain = weights(in_child(children.trace, trained("sft")))

    reward = weights(in_child(children.trace, trained("reward")))

    assert plain - reward == 2 * (VOCABULARY - 1) * 256


def test_distillation_holds_distributions_of_both(in_child: InChild) -> None:
    """At least two more sets of log-probabilities than the plain loss beside the same model."""
    plain = in_child(children.trace, trained("sft", companions=(TEACHER,)))

    distilled = in_child(children.trace, trained("distill", companions=(TEACHER,)))

    assert weights(distilled) == weights(plain)
    logits = 2 * TOKENS * VOCABULARY * 2
    produced = by_role(distilled)[Role.TEMPORARY] - by_role(plain)[Role.TEMPORARY]
    assert produced > 2 * logits


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (trained("grpo"), "objective"),
        (trained("ppo"), "objective"),
        (trained("distill"), "model.companions"),
        (trained("dpo", training={"loss": "fused"}), "training.loss"),
        (trained("dpo", training={"evaluation": {"batchSize": 2}}), "training.evaluation"),
        (
            trained(
                "distill",
                companions=({**TEACHER, "config": llama(vocab_size=2000)["config"]},),
            ),
            "model.companions[0]",
        ),
    ],
    ids=["grpo", "ppo", "no teacher", "fused", "evaluation", "another vocabulary"],
)
def test_what_is_not_modelled_is_named_by_its_place(
    in_child: InChild, document: dict[str, Any], path: str
) -> None:
    """None is taken for something that it is not."""
    refusal = in_child(children.refusal, document)

    assert (refusal.kind, refusal.code, refusal.path) == ("unsupported", "objective", path)


def test_generating_objectives_say_what_can_be_estimated(in_child: InChild) -> None:
    """The way out: the trained part, and the engine as bytes."""
    refusal = in_child(children.refusal, trained("grpo"))

    assert "extraBytes" in refusal.hint
