"""Scratch of fused attention kernels."""

from __future__ import annotations

from dataclasses import replace

from estimator.device import Device
from estimator.kernels.attention import cudnn_backward, efficient_backward, flash_backward
from estimator.kernels.scratch import Scratch
from estimator.notes import Unknown
from estimator.trace import Kernel, TensorFacts

A100 = Device(
    name="a100",
    total_bytes=None,
    reservation_bytes=0,
    budget_bytes=None,
    compute_capability=(8, 0),
    multiprocessors=108,
)


def attention(
    kind: str, *, key_heads: int = 8, dtype: str = "bfloat16", deterministic: bool = False
) -> Kernel:
    """Return the backward of attention: batch 2, 8 heads, 200 rows, 160 keys, head size 72."""
    return Kernel(
        operator=f"aten._scaled_dot_product_{kind}_attention_backward",
        operands=(
            TensorFacts(shape=(2, 8, 200, 72), dtype=dtype),
            TensorFacts(shape=(2, key_heads, 160, 72), dtype=dtype),
            TensorFacts(shape=(2, key_heads, 160, 72), dtype=dtype),
        ),
        attributes=(("deterministic", deterministic),),
    )


def sizes(found: Scratch | Unknown) -> list[int]:
    """Return the block sizes of known scratch."""
    assert isinstance(found, Scratch)
    return [block.nbytes for block in found.blocks]


def test_flash_backward_sums_the_query_gradient_in_fp32() -> None:
    """Rows round up to 128, columns to 32: row sums and the gradient's sums."""
    assert sizes(flash_backward(attention("flash"), A100)) == [
        2 * 8 * 256 * 4,
        2 * 8 * 256 * 96 * 4,
    ]


def test_flash_backward_expands_grouped_keys() -> None:
    """With 2 key heads for 8 query heads, key and value gradients exist for all 8 first."""
    assert sizes(flash_backward(attention("flash", key_heads=2), A100))[2:] == [
        2 * 8 * 160 * 72 * 2,
        2 * 8 * 160 * 72 * 2,
    ]


def test_deterministic_flash_backward_keeps_one_sum_a_split() -> None:
    """108 multiprocessors over 16 pairs of batch and head are 7 splits."""
    kernel = attention("flash", deterministic=True)

    assert sizes(flash_backward(kernel, A100))[1] == 7 * 2 * 8 * 256 * 96 * 4


def test_rows_and_heads_swap_in_the_lower_operator() -> None:
    """`_flash_attention_backward` takes batch, length, heads, head size."""
    upper = attention("flash")
    lower = replace(
        upper,
        operator="aten._flash_attention_backward",
        operands=tuple(
            TensorFacts(
                shape=(each.shape[0], each.shape[2], each.shape[1], each.shape[3]),
                dtype=each.dtype,
            )
            for each in upper.operands
        ),
    )

    assert flash_backward(lower, A100) == flash_backward(upper, A100)


def test_efficient_backward_sums_the_query_gradient_by_blocks() -> None:
    """200 rows and 72 columns are 2 x 2 blocks of 128 x 64, each with a lock of 16 bytes."""
    expected = [2 * 8 * 224 * 4, 2 * 8 * (2 * 2) * (128 * 64 * 4 + 16)]

    assert sizes(efficient_backward(attention("efficient", dtype="float32"), A100)) == expected
    assert sizes(efficient_backward(attention("efficient", dtype="float16"), A100)) == expected


def test_efficient_backward_sums_fp32_in_place_on_old_cards() -> None:
    """Before compute capability 7.0 only the row sums are left."""
    old = replace(A100, compute_capability=(6, 0))

    assert sizes(efficient_backward(attention("efficient", dtype="float32"), old)) == [
        2 * 8 * 224 * 4
    ]


def test_attention_without_shapes_is_unknown() -> None:
    """Missing operands are reported, not taken for zero."""
    bare = Kernel(operator="aten._flash_attention_backward", operands=())

    for rule in (flash_backward, efficient_backward, cudnn_backward):
        assert isinstance(rule(bare, A100), Unknown)
