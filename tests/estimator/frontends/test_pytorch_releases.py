"""What older releases of transformers and timm do otherwise than those that trace.

Expected sizes are those of the tensors in the code of that release, named in each test.
"""

from __future__ import annotations

from typing import Any

import pytest

from estimator.catalog.contemporaries import CONTEMPORARIES, contemporary
from estimator.frontends.pytorch.build.releases import parse_release
from estimator.trace import EventKind, Trace
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import bert, job, kept, llama, operators

pytestmark = pytest.mark.torch

BATCH, LENGTH, HEADS = 2, 128, 4
VOCABULARY = 1000
EFFICIENT = "aten._scaled_dot_product_efficient_attention"
SCORES = 4 * BATCH * HEADS * LENGTH * LENGTH
"""Bytes of one fp32 score matrix of the small models."""


def small(model: dict[str, Any], *, precision: str = "fp32", **versions: str) -> dict[str, Any]:
    """Return a job of *model*; *versions*: of torch, and of libraries by name."""
    document = job(
        model,
        input={"batchSize": BATCH, "sequenceLength": LENGTH},
        training={"precision": precision},
    )
    if "torch" in versions:
        document["frameworkVersion"] = versions.pop("torch")
    return {**document, "runtime": {"libraries": versions}}


def t5(**extra: Any) -> dict[str, Any]:
    """Return a small T5 without dropout."""
    config = {
        "model_type": "t5",
        "d_model": 64,
        "d_kv": 16,
        "d_ff": 128,
        "num_layers": 2,
        "num_heads": HEADS,
        "vocab_size": VOCABULARY,
        "dropout_rate": 0.0,
    }
    made = {"source": "huggingface", "name": "small-t5", "task": "seq2seq-lm", "config": config}
    return {**made, **extra}


def gpt2(**extra: Any) -> dict[str, Any]:
    """Return a small GPT-2 without dropout."""
    config = {
        "model_type": "gpt2",
        "n_embd": 64,
        "n_layer": 2,
        "n_head": HEADS,
        "vocab_size": VOCABULARY,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
    }
    made = {"source": "huggingface", "name": "small-gpt2", "task": "causal-lm", "config": config}
    return {**made, **extra}


def made(trace: Trace, nbytes: int) -> int:
    """Return how many tensors of *nbytes* the second step makes."""
    return sum(
        trace.sizes[identifier] == nbytes
        for kind, identifier, place in zip(trace.kinds, trace.ids, trace.places, strict=True)
        if kind == EventKind.ALLOC and trace.place_table[place].step == 2
    )


def test_t5_of_a_torch_2_6_job_attends_eagerly(in_child: InChild) -> None:
    """transformers gave T5 fused attention in 5.15; what goes with torch 2.6 is 4.51."""
    trace = in_child(children.trace, small(t5(), torch="2.6.0"))

    assert EFFICIENT not in operators(trace)


def test_t5_of_transformers_5_15_attends_by_sdpa(in_child: InChild) -> None:
    """A named release beats the one that goes with the job's PyTorch."""
    trace = in_child(children.trace, small(t5(), torch="2.6.0", transformers="5.15.1"))

    assert EFFICIENT in operators(trace)


def test_a_stated_attention_beats_the_release(in_child: InChild) -> None:
    """A job that asks for SDPA gets it."""
    trace = in_child(children.trace, small(t5(attention="sdpa"), torch="2.6.0"))

    assert EFFICIENT in operators(trace)


def test_the_release_that_was_taken_is_an_assumption(in_child: InChild) -> None:
    """An absent release is named, with where it comes from; a named one is not."""
    path = "runtime.libraries.transformers"
    absent, stated = (
        in_child(children.trace, small(gpt2(), torch="2.6.0", **libraries))
        for libraries in ({}, {"transformers": "4.48.0"})
    )

    values = {note.path: note.value for note in absent.assumptions}
    assert values[path] == "4.51.3"
    assert path not in {note.path for note in stated.assumptions}


@pytest.mark.parametrize(
    ("release", "copies"), [("4.40.2", True), ("4.48.3", True), ("4.49.0", False)]
)
def test_a_causal_loss_copied_the_shifted_logits_before_4_49(
    in_child: InChild, release: str, copies: bool
) -> None:
    """`shift_logits` is contiguous: the logits without the last token's, once more."""
    trace = in_child(children.trace, small(gpt2(), torch="2.6.0", transformers=release))

    shifted = 4 * BATCH * (LENGTH - 1) * VOCABULARY
    assert (made(trace, shifted) > 0) is copies


@pytest.mark.parametrize(("release", "wide"), [("4.45.2", 2), ("4.46.3", 1)])
def test_llama_returned_fp32_logits_before_4_46(in_child: InChild, release: str, wide: int) -> None:
    """In bf16 the fp32 logits live with the outputs, beside what the loss keeps of them."""
    trace = in_child(
        children.trace, small(llama(), precision="bf16", torch="2.6.0", transformers=release)
    )

    logits = 4 * BATCH * LENGTH * VOCABULARY
    shifted = 4 * BATCH * (LENGTH - 1) * VOCABULARY
    assert kept(trace, logits) + kept(trace, shifted) == wide


def test_keys_and_values_of_a_first_forward_are_copied_since_4_56(in_child: InChild) -> None:
    """The cache concatenates them to nothing; older caches keep the views of the product."""
    document = gpt2(attention="eager")
    old, new = (
        in_child(children.trace, small(document, torch="2.8.0", transformers=release))
        for release in ("4.55.4", "4.57.1")
    )

    product = 4 * BATCH * LENGTH * 3 * 64
    assert kept(old, product) - kept(new, product) == 2


def test_sdpa_of_4_48_to_4_55_is_called_on_copies(in_child: InChild) -> None:
    """Queries, keys and values are contiguous copies of the product's parts; 4.47 takes views."""
    own, copies = (
        in_child(children.trace, small(gpt2(), torch="2.6.0", transformers=release))
        for release in ("4.47.1", "4.48.3")
    )

    part = 4 * BATCH * LENGTH * 64
    assert kept(copies, part) - kept(own, part) == 2 * 3


@pytest.mark.parametrize(
    ("torch", "release", "repeats"),
    [("2.6.0", "4.53.3", True), ("2.6.0", "4.54.1", False), ("2.4.1", "4.54.1", True)],
)
def test_grouped_keys_were_repeated_for_sdpa(
    in_child: InChild, torch: str, release: str, repeats: bool
) -> None:
    """8 heads of queries, 2 of keys: before 4.54 or PyTorch 2.5 SDPA sees 8 of all."""
    trace = in_child(
        children.trace, small(llama(), precision="bf16", torch=torch, transformers=release)
    )
    fewer = in_child(
        children.trace, small(llama(), precision="bf16", torch="2.6.0", transformers="4.54.1")
    )

    whole = 2 * BATCH * LENGTH * 256
    assert (kept(trace, whole) > kept(fewer, whole)) is repeats


def test_bert_before_5_adds_a_wide_mask_to_half_scores(in_child: InChild) -> None:
    """Under fp16 autocast of torch 1.10 softmax keeps the fp32 sum, not the fp16 scores."""
    model = bert(attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0)
    old, new = (
        in_child(
            children.trace,
            small(model, precision="amp-fp16", torch="1.10.2", transformers=release),
        )
        for release in ("4.18.0", "5.0.0")
    )

    layers = model["config"]["num_hidden_layers"]
    assert kept(old, SCORES) - kept(new, SCORES) == layers


def test_softmax_of_t5_is_in_fp32_before_5_15(in_child: InChild) -> None:
    """`scores.float()`: in bf16 every attention keeps one fp32 score matrix."""
    document = t5(attention="eager")
    old, new = (
        in_child(
            children.trace,
            small(document, precision="bf16", torch="2.6.0", transformers=release),
        )
        for release in ("4.51.3", "5.15.0")
    )

    attentions = 2 + 2 * 2
    assert kept(old, SCORES) - kept(new, SCORES) == attentions


def timm(name: str, **extra: Any) -> dict[str, Any]:
    """Return a model of timm."""
    return {"source": "timm", "name": name, **extra}


def vision(name: str, **versions: str) -> dict[str, Any]:
    """Return a job of a model of timm on two images."""
    torch = versions.pop("torch", "2.8.0")
    document = job(timm(name), batch=BATCH, training={"precision": "fp32"})
    return {**document, "frameworkVersion": torch, "runtime": {"libraries": versions}}


def test_hiera_before_1_0_26_attends_to_the_whole_picture_without_a_fused_kernel(
    in_child: InChild,
) -> None:
    """Five dimensions are for the math path: tiny Hiera keeps 196 x 196 scores of 4 heads."""
    old, new = (
        in_child(children.trace, vision("hiera_tiny_224", timm=release))
        for release in ("1.0.25", "1.0.26")
    )

    scores = 4 * BATCH * 4 * 196 * 196
    assert kept(old, scores) > 0
    assert kept(new, scores) == 0


def test_parallel_blocks_before_1_0_25_add_the_bias_in_the_product(in_child: InChild) -> None:
    """The MLP's input is added to apart since: a tensor more for each of twelve blocks."""
    name = "vit_base_patch16_xp_224"
    old, new = (
        in_child(children.trace, vision(name, timm=release)) for release in ("1.0.24", "1.0.25")
    )

    hidden = 4 * BATCH * 197 * 3072
    assert kept(new, hidden) - kept(old, hidden) == 12


def test_timm_before_0_9_attends_in_parts(in_child: InChild) -> None:
    """0.6 has no fused attention, whatever PyTorch has."""
    old, new = (
        in_child(children.trace, vision("vit_tiny_patch16_224", timm=release))
        for release in ("0.6.13", "0.9.2")
    )

    assert EFFICIENT not in operators(old)
    assert EFFICIENT in operators(new)


def test_what_goes_with_a_pytorch_is_the_newest_before_the_next() -> None:
    """Releases only grow; a PyTorch newer than the table has today's libraries."""
    for library in ("transformers", "timm"):
        texts = [CONTEMPORARIES[torch][library] for torch in sorted(CONTEMPORARIES)]
        numbers = [parse_release(text) or () for text in texts]
        assert numbers == sorted(numbers)
    assert contemporary((1, 1), "transformers") == "2.8.0"
    assert contemporary((2, 6), "timm") == "1.0.15"
    assert contemporary((99, 0), "transformers") is None
