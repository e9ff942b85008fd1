"""Scratch of PyTorch's fused attention kernels.

    Kernel, Device -> Scratch

Operands are query, key, value (for the backward too), laid out as the operator takes them:
`_scaled_dot_product_*` batch, heads, length, head size; `_flash_attention_*` and
`_efficient_attention_*` batch, length, heads, head size. Outputs, the log-sum-exp among them,
are tensors of the trace.

Source: `mha_bwd` in pytorch/pytorch@03b7c19dbe228c9febd503755f723240945f8067
aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp; `workspace_size` in
torch 2.15.0 (d0f2af8b) ATen/native/transformers/cuda/mem_eff_attention/kernel_backward.h.
Not modelled: split keys of short queries (inference), nested and variable-length inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.device import Device
from estimator.kernels.scratch import NONE, Scratch, attribute, certain, element_bytes
from estimator.notes import Unknown, UnknownCode
from estimator.trace import Kernel
from estimator.units import round_up

ROWS = 128
"""Rows of the query a backward block works on."""
FLOAT = 4
LOCK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    batch: int
    heads: int
    key_heads: int
    length: int
    key_length: int
    head_size: int
    item: int


def _shape(kernel: Kernel) -> _Shape | None:
    if len(kernel.operands) < 2 or any(len(each.shape) != 4 for each in kernel.operands[:2]):
        return None
    query, key = kernel.operands[:2]
    heads, rows = (1, 2) if "scaled_dot_product" in kernel.operator else (2, 1)
    return _Shape(
        batch=query.shape[0],
        heads=query.shape[heads],
        key_heads=key.shape[heads],
        length=query.shape[rows],
        key_length=key.shape[rows],
        head_size=query.shape[3],
        item=element_bytes(query),
    )


def no_scratch(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return nothing: a fused forward keeps its sums in registers and shared memory."""
    return NONE


def flash_backward(kernel: Kernel, device: Device) -> Scratch | Unknown:
    """Return the fp32 sums of the query's gradient, the row sums, and expanded key gradients.

    Deterministic mode keeps one sum a split, as many splits as fill the card; grouped queries
    need key and value gradients of all query heads before they are added up.
    """
    shape = _shape(kernel)
    if shape is None:
        return _not_known(kernel)
    rows = round_up(shape.length, ROWS)
    columns = round_up(shape.head_size, 32 if shape.head_size <= 128 else 64)
    pairs = shape.batch * shape.heads
    splits = 1
    if attribute(kernel, "deterministic"):
        splits = ((device.multiprocessors or 108) + pairs - 1) // pairs
    expanded = 0
    if shape.key_heads != shape.heads:
        expanded = pairs * shape.key_length * shape.head_size * shape.item
    return certain(
        pairs * rows * FLOAT, splits * pairs * rows * columns * FLOAT, expanded, expanded
    )


def efficient_backward(kernel: Kernel, device: Device) -> Scratch | Unknown:
    """Return the row sums, and the fp32 sums of the query's gradient, a block of them a time.

    Blocks are 64 x 64 for heads up to 64, else 128 rows high, each with a 16-byte lock. Before
    compute capability 7.0 fp32 gradients are summed in place.
    Not modelled: key and value sums of 16-bit heads above 128, at most 200 blocks each (26 MiB);
    the product that fp32 row sums are made from, dead before the gradient's sums are taken.
    """
    shape = _shape(kernel)
    if shape is None:
        return _not_known(kernel)
    pairs = shape.batch * shape.heads
    sums = pairs * round_up(shape.length, 32) * FLOAT
    if shape.item >= FLOAT and device.compute_capability < (7, 0):
        return certain(sums)
    rows, columns = (64 if shape.head_size <= 64 else ROWS), 64
    blocks = -(-shape.length // rows) * -(-shape.head_size // columns)
    return certain(sums, pairs * blocks * (rows * columns * FLOAT + LOCK))


def cudnn_backward(kernel: Kernel, device: Device) -> Scratch | Unknown:  # noqa: ARG001
    """Return the row sums and fp32 sums of the query's gradient, cuDNN's workspace (assumed).

    cuDNN was not asked; the two terms are those of every flash backward.
    """
    shape = _shape(kernel)
    if shape is None:
        return _not_known(kernel)
    rows = shape.batch * shape.heads * shape.length
    return certain(rows * FLOAT + rows * shape.head_size * FLOAT)


def _not_known(kernel: Kernel) -> Unknown:
    return Unknown(
        code=UnknownCode.KERNEL,
        path=kernel.operator,
        reason="the shapes of its query and key are not both known",
    )
