"""What a compiler keeps less of, and what it is not given."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.trace import EventKind, Phase, Trace
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import fault, job, llama, peak

pytestmark = pytest.mark.torch

TOKENS, HIDDEN, LAYERS, VOCABULARY = 2 * 256, 256, 4, 50_000
LOGITS = TOKENS * VOCABULARY


def compiled(*, version: str = "2.9.0", **training: Any) -> dict[str, Any]:
    """Return a job with many logits that trains compiled, under FSDP2's rules for the loss."""
    return job(
        llama(vocab_size=VOCABULARY),
        frameworkVersion=version,
        training={"precision": "bf16", "compile": True, "keepOutputs": False, **training},
        parallelism={"implementation": "fsdp2"},
        input={"sequenceLength": 256},
    )


def kept(trace: Trace) -> int:
    """Return the bytes alive when the first backward pass begins."""
    live = 0
    for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        if trace.place_table[place].phase is Phase.BACKWARD:
            return live
        if kind == EventKind.ALLOC:
            live += trace.sizes[tensor]
        elif kind == EventKind.FREE:
            live -= trace.sizes[tensor]
    raise AssertionError


def test_a_compiled_block_does_not_keep_a_product_nobody_reads(in_child: InChild) -> None:
    """The last product of a block goes into the residual sum, whose backward reads no value."""
    eager, whole = (
        in_child(
            children.trace,
            compiled(gradientCheckpointing="selective", compile=compile, loss="fused"),
        )
        for compile in (False, True)
    )

    assert fault(whole) is None
    last_norm = 4 * TOKENS * HIDDEN  # its input in fp32, which a compiled norm does not keep
    assert kept(eager) - kept(whole) == LAYERS * TOKENS * HIDDEN * 2 + last_norm


def test_the_loss_of_fsdp2_was_not_compiled_before_torch_2_7(in_child: InChild) -> None:
    """Eagerly its gradient is there in fp32 beside the softmax: 12 bytes a logit, not 4."""
    old, new = (in_child(children.trace, compiled(version=version)) for version in ("2.6", "2.7"))

    assert peak(old) - peak(new) == pytest.approx(8 * LOGITS, rel=0.02)
    said = [note.value for note in old.assumptions if note.path == "training.compile"]
    assert said == ["the loss is not compiled"]


def test_a_compiled_chunk_keeps_its_logits_and_no_softmax(in_child: InChild) -> None:
    """Two bytes a logit until backward in place of four."""
    eager, whole = (
        in_child(children.trace, compiled(loss="chunked", compile=compile))
        for compile in (False, True)
    )

    assert kept(eager) - kept(whole) > 1.9 * LOGITS


def test_compiled_norms_and_gates_keep_no_copies(in_child: InChild) -> None:
    """Neither the fp32 copy of a norm's input nor the activated gate lives until backward."""
    eager, whole = (
        in_child(children.trace, compiled(loss="fused", compile=compile))
        for compile in (False, True)
    )

    assert fault(whole) is None
    assert kept(eager) - kept(whole) > LAYERS * TOKENS * 512 * 2
