"""Recurrent layers as cuDNN runs them: one call for all steps, with a reserve kept to backward.

    input, states, weights -> output, states, reserve

Source: pytorch/pytorch@001f694a `aten/src/ATen/native/cudnn/RNN.cpp`. The weights lie in one flat
buffer (`flatten_parameters`), so they cost nothing more, and their gradients are views of another.
What cuDNN keeps in the reserve is not published. It is taken for what a fused layer must keep:
apache/mxnet `src/operator/rnn-inl.h` (`GetRNNReserveSpaceSize`), 7 values a step, layer and
direction for an LSTM, the last layer's output not among them.
Not modelled: the state of dropout, the workspace, the flat copy while a model is moved to the card.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten

RELU, TANH, LSTM, GRU = 0, 1, 2, 3
"""`cudnnRNNMode_t`."""

KEPT = {RELU: 2, TANH: 2, LSTM: 7, GRU: 6}
"""Values kept a step, layer, direction and hidden unit.

LSTM: four gates, cell, its activation, output. GRU: three gates, the recurrent part of the
candidate, state, output. Plain: state, output. All but the LSTM's are derived.
"""

Packed = Sequence[int]


def reserve_elements(mode: int, *, steps: int, hidden: int, layers: int, directions: int) -> int:
    """Return how many values the reserve holds; *steps* counts those of all samples."""
    return steps * hidden * directions * (KEPT[mode] * layers - 1)


def with_reserve(args: Any, result: Any) -> Any:
    """Return the result of `_cudnn_rnn` with a reserve, which its shape rule leaves empty."""
    source, mode, hidden, layers = args[0], args[6], args[7], args[9]
    is_training, is_bidirectional, packed = args[12], args[13], args[14]
    if not is_training:
        return result
    steps = source.shape[0] if packed else source.shape[0] * source.shape[1]
    directions = 2 if is_bidirectional else 1
    elements = reserve_elements(
        mode, steps=steps, hidden=hidden, layers=layers, directions=directions
    )
    reserve = source.new_empty(elements * source.element_size(), dtype=torch.uint8)
    return (*result[:3], reserve, result[4])


def backward(*args: Any) -> tuple[Any, Any, Any, list[torch.Tensor]]:
    """Return the gradients of `_cudnn_rnn`: the weights' are views of one buffer."""
    source, weights, hx, cx = args[0], args[1], args[4], args[5]
    flat = source.new_empty(sum(weight.numel() for weight in weights))
    gradients: list[torch.Tensor] = []
    start = 0
    for weight in weights:
        gradients.append(flat.narrow(0, start, weight.numel()).view(weight.shape))
        start += weight.numel()
    cell = None if cx is None else torch.empty_like(cx)
    return torch.empty_like(source), torch.empty_like(hx), cell, gradients


def _run(
    mode: int,
    source: torch.Tensor,
    hx: torch.Tensor,
    cx: torch.Tensor | None,
    weights: Sequence[torch.Tensor],
    settings: tuple[bool, int, float, bool, bool, bool],
    packed: Packed = (),
) -> Any:
    has_biases, layers, dropout, train, bidirectional, batch_first = settings
    directions = 2 if bidirectional else 1
    stride = len(weights) // (layers * directions)
    hidden = cx.shape[2] if cx is not None else hx.shape[2]
    is_projected = stride == (5 if has_biases else 3)
    result = aten._cudnn_rnn(
        source, weights, stride, weights[0].detach(), hx, cx, mode, hidden,
        hx.shape[2] if is_projected else 0, layers, batch_first, dropout, train,
        bidirectional, packed, None,
    )  # fmt: skip
    return result[:3]


def _lstm(
    source: torch.Tensor, hx: Any, weights: Any, has_biases: bool, layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    settings = (has_biases, layers, dropout, train, bidirectional, batch_first)
    return _run(LSTM, source, hx[0], hx[1], weights, settings)


def _lstm_packed(
    source: torch.Tensor, batch_sizes: torch.Tensor, hx: Any, weights: Any, has_biases: bool,
    layers: int, dropout: float, train: bool, bidirectional: bool,
) -> Any:  # fmt: skip
    settings = (has_biases, layers, dropout, train, bidirectional, False)
    return _run(LSTM, source, hx[0], hx[1], weights, settings, batch_sizes.tolist())


def _plain(mode: int) -> Callable[..., Any]:
    def run(
        source: torch.Tensor, hx: Any, weights: Any, has_biases: bool, layers: int,
        dropout: float, train: bool, bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        settings = (has_biases, layers, dropout, train, bidirectional, batch_first)
        return _run(mode, source, hx, None, weights, settings)[:2]

    return run


def _plain_packed(mode: int) -> Callable[..., Any]:
    def run(
        source: torch.Tensor, batch_sizes: torch.Tensor, hx: Any, weights: Any, has_biases: bool,
        layers: int, dropout: float, train: bool, bidirectional: bool,
    ) -> Any:  # fmt: skip
        settings = (has_biases, layers, dropout, train, bidirectional, False)
        return _run(mode, source, hx, None, weights, settings, batch_sizes.tolist())[:2]

    return run


RULES: dict[str, Callable[..., Any]] = {
    "lstm.input": _lstm,
    "lstm.data": _lstm_packed,
    "gru.input": _plain(GRU),
    "gru.data": _plain_packed(GRU),
    "rnn_tanh.input": _plain(TANH),
    "rnn_tanh.data": _plain_packed(TANH),
    "rnn_relu.input": _plain(RELU),
    "rnn_relu.data": _plain_packed(RELU),
}
"""Operators that stand above the device, and the call CUDA makes of each."""
