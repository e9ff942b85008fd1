"""Library calls of a node: convolutions and recurrent layers, as the card will see them.

    Node -> Kernel | None

They are named as PyTorch names them: the same libraries answer for them. MXNet picks the fastest
algorithm it finds (`MXNET_CUDNN_AUTOTUNE_DEFAULT`), which is what PyTorch's benchmark mode does.
Source: apache/mxnet@1.9.1 `src/operator/nn/cudnn/cudnn_convolution-inl.h`.
Not modelled: MXNet's own limit (`workspace`, 1,024 MiB), which most algorithms stay under.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.graph import Entry, Key, Node
from estimator.frontends.mxnet.operators.sequences import GATES
from estimator.trace import Kernel, TensorFacts

CONVOLUTIONS = ("Convolution", "Deconvolution")
MODES = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}
"""`cudnnRNNMode_t`."""
KEPT = {"rnn_relu": 2, "rnn_tanh": 2, "lstm": 7, "gru": 6}
"""Values kept a step, layer, direction and hidden unit (see `reserve_bytes`)."""


def kernel_of(node: Node, used: Collection[Key]) -> Kernel | None:
    """Return the call of a forward or backward node, None if none wants scratch.

    *used* holds the outputs that somebody reads: others are not computed.
    """
    forward = node.forward if node.is_backward else node
    if forward is None or node.operator.removeprefix("_backward_") != forward.operator:
        return None
    if forward.operator in CONVOLUTIONS:
        return _convolution(node, forward, used)
    if forward.operator == "RNN":
        return _recurrent(node, forward)
    return None


def _convolution(node: Node, forward: Node, used: Collection[Key]) -> Kernel:
    attributes = Attributes(forward.name, forward.attributes)
    rank = len(attributes.integers("kernel"))
    last = attributes.text("layout").endswith("C")
    operands = tuple(_facts(entry, last=last) for entry in (*forward.inputs[:2], Entry(forward, 0)))
    settings: dict[str, int | bool | tuple[int, ...]] = {
        "benchmark": attributes.text("cudnn_tune") != "off",
        "dilation": attributes.integers("dilate", rank, 1),
        "groups": attributes.integer("num_group", 1),
        "padding": attributes.integers("pad", rank, 0),
        "stride": attributes.integers("stride", rank, 1),
        "transposed": forward.operator == "Deconvolution",
    }
    operator = "aten.convolution"
    if node.is_backward:
        operator = "aten.convolution_backward"
        settings["output_mask"] = tuple(int((node, index) in used) for index in range(3))
    return Kernel(operator=operator, operands=operands, attributes=tuple(sorted(settings.items())))


def _facts(entry: Entry, *, last: bool) -> TensorFacts:
    """Return an operand with channels second, whatever its layout."""
    shape = entry.shape
    if last:
        shape = (shape[0], shape[-1], *shape[1:-1])
    return TensorFacts(shape=shape, dtype=entry.dtype, channels_last=last)


def _recurrent(node: Node, forward: Node) -> Kernel:
    attributes = Attributes(forward.name, forward.attributes)
    data = forward.inputs[0]
    suffix = "_backward" if node.is_backward else ""
    return Kernel(
        operator=f"aten._cudnn_rnn{suffix}",
        operands=(TensorFacts(shape=data.shape, dtype=data.dtype),),
        attributes=(
            ("directions", 2 if attributes.flag("bidirectional") else 1),
            ("hidden", attributes.integer("state_size")),
            ("mode", MODES[attributes.text("mode")]),
        ),
    )


def reserve_bytes(node: Node) -> int:
    """Return what cuDNN keeps of a recurrent layer from forward to backward.

    It is not published; it is taken for what MXNet's own fused layer keeps, 7 values for an LSTM.
    Source: apache/mxnet@1.9.1 `src/operator/rnn-inl.h` (`GetRNNReserveSpaceSize`); the numbers of
    the other kinds are derived.
    """
    attributes = Attributes(node.name, node.attributes)
    mode = attributes.text("mode")
    data = node.inputs[0]
    directions = 2 if attributes.flag("bidirectional") else 1
    steps = prod(data.shape[:2])
    kept = KEPT[mode] * attributes.integer("num_layers") - 1
    assert mode in GATES
    return (
        steps
        * attributes.integer("state_size")
        * directions
        * kept
        * (data.nbytes // data.elements)
    )
