"""Scratch of kernels that sort, scatter and step through time."""

from __future__ import annotations

from estimator.device import Device
from estimator.kernels.rules import RULES
from estimator.kernels.scratch import NONE, Scratch
from estimator.trace import Kernel, TensorFacts

CARD = Device(
    name="card",
    total_bytes=None,
    reservation_bytes=0,
    budget_bytes=None,
    compute_capability=(8, 0),
)


def scratch(operator: str, *operands: TensorFacts, **attributes: int) -> Scratch:
    """Return what the table's rule says of a call."""
    kernel = Kernel(operator=operator, operands=operands, attributes=tuple(attributes.items()))
    found = RULES[operator](kernel, CARD)
    assert isinstance(found, Scratch)
    return found


def fp32(*shape: int) -> TensorFacts:
    return TensorFacts(shape=shape, dtype="float32")


def indices(*shape: int) -> TensorFacts:
    return TensorFacts(shape=shape, dtype="int64")


def test_slices_up_to_4096_are_sorted_in_place() -> None:
    """One more element and the radix sort takes a copy of keys and indices, perhaps three."""
    assert scratch("aten.sort", fp32(1000, 4096), dim=-1) == NONE
    (block,) = scratch("aten.sort", fp32(10, 4097), dim=-1).blocks

    copy = 10 * 4097 * (4 + 8)
    assert (block.least, block.nbytes, block.most) == (0, copy, 3 * copy)


def test_the_sorted_dimension_counts_not_the_last() -> None:
    """A long first dimension is sorted with scratch, however short the last is."""
    assert scratch("aten.sort", fp32(5000, 2), dim=0) != NONE
    assert scratch("aten.sort", fp32(5000, 2), dim=1) == NONE


def test_topk_writes_its_results_only() -> None:
    """A vocabulary is selected from without a copy; more than 4,096 results are sorted."""
    assert scratch("aten.topk", fp32(8, 150_000), k=50, dim=-1) == NONE
    (block,) = scratch("aten.topk", fp32(8, 150_000), k=5000, dim=-1).blocks

    assert block.nbytes == 2 * 8 * 5000 * (4 + 8)


def test_sums_into_indices_sort_them() -> None:
    """Linear indices, their order, both sorted, and cub's two buffers."""
    blocks = scratch("aten.index_put_", fp32(100, 8), indices(1000), fp32(1000, 8)).blocks

    assert [block.nbytes for block in blocks] == [8000, 8000, 8000, 8000, 16000]
    assert blocks[-1].least == 0


def test_few_tokens_need_no_sort_for_an_embeddings_gradient() -> None:
    """Up to 3,072 indices one kernel adds them up."""
    gradient = fp32(3072, 64)

    assert scratch("aten.embedding_dense_backward", gradient, indices(3072)) == NONE


def test_an_embeddings_gradient_takes_partial_sums() -> None:
    """4,000 tokens of 500 words: 400 + 500 sums of 64 fp32 values beside the indices."""
    found = scratch(
        "aten.embedding_dense_backward",
        TensorFacts(shape=(4000, 64), dtype="bfloat16"),
        indices(4000),
        num_weights=500,
    )

    sums = found.groups[1][-1]
    assert sums.nbytes == (4000 // 10 + 500) * 64 * 4
    assert sums.least == 4000 // 10 * 64 * 4
    assert [block.nbytes for block in found.groups[1][:-1]] == [
        4000 * 8,
        4000 * 8,
        4000 * 8,
        500 * 8,
        500 * 8,
        900 * 8,
    ]


def test_operators_that_hide_their_temporaries_are_charged_them() -> None:
    """One tensor of exponentials; log-sigmoid and the loss before it is reduced."""
    logits = fp32(4, 1000)

    assert [b.nbytes for b in scratch("aten.logsumexp", logits).blocks] == [16000]
    assert [
        b.nbytes for b in scratch("aten.binary_cross_entropy_with_logits", logits, logits).blocks
    ] == [16000, 16000]


def test_a_recurrence_may_hold_the_gates_of_a_layer() -> None:
    """A bidirectional LSTM: 4 gates of 32 units, two directions, 20 steps of 3 samples."""
    (block,) = scratch("aten._cudnn_rnn", fp32(20, 3, 16), mode=2, hidden=32, directions=2).blocks

    gates = 20 * 3 * 4 * 32 * 2 * 4
    assert (block.least, block.nbytes, block.most) == (0, gates, 2 * gates)
