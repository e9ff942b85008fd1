"""Which attention kernel a card takes, and what it keeps."""

from __future__ import annotations

import pytest

from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import allocated_by, bert, job, llama, operators

pytestmark = pytest.mark.torch

FLASH = "aten._scaled_dot_product_flash_attention"
EFFICIENT = "aten._scaled_dot_product_efficient_attention"
SCORES = 2 * 4 * 128 * 128
"""Elements of a score matrix: batch 2, four heads, 128 by 128."""


def test_flash_keeps_no_score_matrix_and_math_does(in_child: InChild) -> None:
    """bf16 attention on sm 80 keeps a log-sum-exp; without kernels the scores are kept."""
    document = job(
        bert(attention_probs_dropout_prob=0.0),
        input={"sequenceLength": 128},
        training={"precision": "bf16"},
    )

    ampere = in_child(children.trace, document, children.AMPERE)
    bare = in_child(children.trace, document, children.NO_KERNELS)

    assert FLASH in operators(ampere)
    assert 2 * SCORES not in ampere.sizes
    assert not operators(bare) & {FLASH, EFFICIENT}
    assert 2 * SCORES in bare.sizes


def test_attention_dropout_does_not_bring_the_scores_back(in_child: InChild) -> None:
    """Fused kernels drop out inside: BERT with dropout keeps no mask of its scores."""
    document = job(bert(), input={"sequenceLength": 128}, training={"precision": "bf16"})

    trace = in_child(children.trace, document)

    assert FLASH in operators(trace)
    assert SCORES not in trace.sizes


def test_fp32_and_older_cards_take_the_efficient_kernel(in_child: InChild) -> None:
    """Flash needs 16 bits and sm 80; the efficient kernel takes the rest."""
    fp32 = in_child(children.trace, job(bert(), input={"sequenceLength": 128}))
    turing = in_child(
        children.trace,
        job(bert(), input={"sequenceLength": 128}, training={"precision": "fp16"}),
        children.TURING,
    )

    assert EFFICIENT in operators(fp32)
    assert EFFICIENT in operators(turing)


def test_a_padding_mask_turns_flash_and_grouped_queries_off(in_child: InChild) -> None:
    """With a mask keys and values are repeated for all heads, and the efficient kernel runs."""
    plain, padded = (
        in_child(
            children.trace,
            job(
                llama(),
                input={"sequenceLength": 128, "paddingMask": mask},
                training={"precision": "bf16", "useCache": False},
            ),
        )
        for mask in (False, True)
    )

    assert FLASH in operators(plain)
    assert EFFICIENT in operators(padded)
    key = next(k for k in plain.kernels if k.operator == FLASH).operands[1]
    assert key.shape == (2, 2, 128, 32)
    key = next(k for k in padded.kernels if k.operator == EFFICIENT).operands[1]
    assert key.shape == (2, 8, 128, 32)


def test_eager_attention_keeps_scores_and_a_boolean_mask(in_child: InChild) -> None:
    """Eager attention with dropout keeps the scores, and one byte a score for the mask."""
    model = {**bert(), "attention": "eager"}

    trace = in_child(children.trace, job(model, input={"sequenceLength": 128}))

    masks = [size for size in allocated_by(trace, "aten.native_dropout") if size == SCORES]
    assert len(masks) == 2 * 2
