"""Scratch of PyTorch's own kernels that sort, scatter or normalise, and of cuDNN's recurrences.

    Kernel, Device -> Scratch

What PyTorch allocates itself is a rule; what cub and cuDNN take inside a call is a bound.
Not modelled: the few kilobytes cub and reductions keep for their blocks.

Source: aten/src/ATen/native/cuda of PyTorch, file and function at each rule.
"""

from __future__ import annotations

from estimator.device import Device
from estimator.kernels.scratch import (
    NONE,
    Block,
    Scratch,
    attribute,
    bound,
    certain,
    element_bytes,
    num_elements,
    tensor_bytes,
    together,
)
from estimator.notes import Assumption, AssumptionCode
from estimator.trace import Kernel, TensorFacts

FLOAT = 4
INDEX = 8
"""Bytes of an int64 index."""
SMALL_SORT = 4096
"""Longest slice that is sorted in place (`should_use_small_sort`, SortingCommon.cuh)."""
FEW_INDICES = 3072
"""Indices up to which an embedding's gradient is summed without sorting (Embedding.cu)."""
ROWS_A_PARTIAL = 10
"""Equal indices that share one partial sum (`NROWS_PER_THREAD`, EmbeddingBackwardKernel.cu)."""
INTEGERS = frozenset({"int64", "int32"})
GATES = {0: 1, 1: 1, 2: 4, 3: 3}
"""`cudnnRNNMode_t` -> products a step: plain with relu or tanh, LSTM, GRU."""


def _assumption(kernel: Kernel, value: str, reason: str) -> Assumption:
    return Assumption(
        code=AssumptionCode.KERNEL_WORKSPACE, path=kernel.operator, value=value, reason=reason
    )


def _slice_length(kernel: Kernel) -> int:
    """Return the length of what is sorted: along `dim`, else all."""
    shape, dim = kernel.operands[0].shape, attribute(kernel, "dim")
    if not isinstance(dim, int) or not -len(shape) <= dim < len(shape):
        return num_elements(kernel.operands[0])
    return shape[dim]


def sort(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return a second copy of keys and indices, up to three; short slices are sorted in place.

    Source: `sort_stable_kernel` in Sort.cpp, `segmented_sort_pairs_by_full_sort` in Sort.cu: two
    arrays of index and segment, and the double buffers of cub's radix sort.
    """
    if _slice_length(kernel) <= SMALL_SORT:
        return NONE
    keys = kernel.operands[0]
    copy = num_elements(keys) * (element_bytes(keys) + INDEX)
    return together(
        Block(nbytes=copy, least=0, most=3 * copy),
        assumption=_assumption(
            kernel,
            "second copy of keys and indices",
            "a radix sort holds its keys and values twice",
        ),
    )


def largest(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return a copy of the chosen values and indices if they are too many to sort in place.

    Source: `topk_out_with_sort` and `TORCH_IMPL_FUNC(topk_out_cuda)` in TensorTopK.cpp: a radix
    select writes its results only; they are sorted after it.
    """
    count = attribute(kernel, "k")
    keys = kernel.operands[0]
    length = _slice_length(kernel)
    if not isinstance(count, int) or count <= SMALL_SORT or not length:
        return NONE
    chosen = num_elements(keys) // length * count
    return bound(
        2 * chosen * (element_bytes(keys) + INDEX),
        _assumption(kernel, "a sort of the results", "more of them than are sorted in place"),
    )


def _most_indices(operands: tuple[TensorFacts, ...]) -> int:
    return max((num_elements(each) for each in operands if each.dtype in INTEGERS), default=0)


def scattered_sums(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return linear indices, their order, both sorted: four int64 an index, and cub's buffers.

    Source: `index_put_with_sort_kernel` in Indexing.cu.
    Not modelled: copies of values and of tensors that are not contiguous.
    """
    count = _most_indices(kernel.operands)
    return _sorted_indices(kernel, count, num_own=4) if count else NONE


def _sorted_indices(kernel: Kernel, count: int, *, num_own: int) -> Scratch:
    own = tuple(Block(nbytes=count * INDEX) for _ in range(num_own))
    return together(
        *own,
        Block(nbytes=2 * count * INDEX, least=0),
        assumption=_assumption(
            kernel, "two copies of its indices", "the double buffers of cub's radix sort"
        ),
    )


def embedding_backward(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return the sorted indices, then partial sums: one for ten equal indices, rounded up.

    The newest versions take room for the most sums there can be, one a distinct index beside one
    for every ten; older ones as many as the values need, at least a tenth. Sums of 16-bit gradients
    are fp32.
    Source: `embedding_dense_backward_cuda` in Embedding.cu, `embedding_backward_cuda_kernel` in
    EmbeddingBackwardKernel.cu. Not modelled: counts of `scale_grad_by_freq`.
    """
    count = _most_indices(kernel.operands)
    if count <= FEW_INDICES:
        return NONE
    gradient = kernel.operands[0]
    rows = attribute(kernel, "num_weights")
    distinct = min(count, rows) if isinstance(rows, int) else count
    partials = count // ROWS_A_PARTIAL + distinct
    row = (gradient.shape[-1] if gradient.shape else 1) * max(FLOAT, element_bytes(gradient))
    sorted_indices = tuple(Block(nbytes=count * INDEX) for _ in range(2))
    segments = tuple(
        Block(nbytes=length * INDEX) for length in (count, distinct, distinct, partials)
    )
    sums = Block(nbytes=partials * row, least=-(-count // ROWS_A_PARTIAL) * row)
    return Scratch(
        groups=(
            (*sorted_indices, Block(nbytes=3 * count * INDEX, least=count * INDEX)),
            (*sorted_indices, *segments, sums),
        ),
        assumption=_assumption(
            kernel,
            "as many partial sums as there can be",
            "versions before 2.0 take as many as the values need: at least one for ten indices",
        ),
    )


def unique(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return a second copy of keys and indices: `unique` sorts all it is given (Unique.cu)."""
    keys = kernel.operands[0]
    return bound(
        num_elements(keys) * (element_bytes(keys) + INDEX),
        _assumption(
            kernel,
            "second copy of keys and indices",
            "a radix sort holds its keys and values twice",
        ),
    )


def fourier(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return one complex copy of the input, what an out-of-place transform works in."""
    return bound(
        num_elements(kernel.operands[0]) * 2 * max(FLOAT, element_bytes(kernel.operands[0])),
        _assumption(
            kernel,
            "one complex copy of the input",
            "cuFFT was not asked; small transforms need nothing",
        ),
    )


def recurrent(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return the products of one layer's gates with its inputs, up to twice as much, perhaps none.

    cuDNN computes them for all steps in one product before it steps through time. Its workspace is
    not published and cannot be asked without a card (`cudnnGetRNNTempSpaceSizes`).
    """
    source, hidden = kernel.operands[0], attribute(kernel, "hidden")
    mode, directions = attribute(kernel, "mode"), attribute(kernel, "directions")
    if not isinstance(hidden, int) or not isinstance(mode, int) or not source.shape:
        return NONE
    steps = num_elements(source) // max(1, source.shape[-1])
    width = hidden * GATES.get(mode, 4) * (directions if isinstance(directions, int) else 1)
    nbytes = steps * width * element_bytes(source)
    return together(
        Block(nbytes=nbytes, least=0, most=2 * nbytes),
        assumption=_assumption(
            kernel, "the gates of one layer", "cuDNN's workspace is not published"
        ),
    )


def one_input(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return a tensor of the first operand's size, which the operator's own body makes.

    Source: `logsumexp_out_impl` in ReduceOps.cpp (the exponentials), `dist` in Distance.cpp (the
    difference), `soft_margin_loss` in Loss.cpp.
    """
    return certain(tensor_bytes(kernel.operands[0]))


def two_inputs(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return two tensors of the first operand's size.

    Source: `binary_cross_entropy_with_logits` in Loss.cpp: log-sigmoid, and the loss before it is
    reduced.
    """
    nbytes = tensor_bytes(kernel.operands[0])
    return certain(nbytes, nbytes)


def distances(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return both point sets with two columns more, of which one product gives the distances.

    Source: `_euclidean_dist` in Distance.cpp.
    """
    return certain(*(_widened(points) for points in kernel.operands[:2]))


def _widened(points: TensorFacts) -> int:
    width = points.shape[-1] if points.shape else 1
    return tensor_bytes(points) // max(1, width) * (width + 2)


def no_scratch(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return nothing: the kernel writes its outputs and a few kilobytes of block sums."""
    return NONE
