"""Normalisation and dropout: layers that keep statistics or a mask.

Source: apache/mxnet@1.9.1 `src/operator/nn/{batch_norm,layer_norm,group_norm,dropout,lrn}.cc`,
`src/operator/instance_norm-inl.h`, `l2_normalization-inl.h`.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.graph import FIRST, Entry, Node
from estimator.frontends.mxnet.operators.base import (
    Call,
    Inferred,
    Operator,
    Types,
    always,
    backward,
    no_gradient,
)

WIDE = "float32"


def _batch_norm(call: Call) -> Inferred:
    channels = (call.data[call.axis(call.attributes.integer("axis", 1))],)
    return Inferred([call.data, channels, channels], [call.data] + [channels] * 4)


def _batch_norm_types(_: Attributes, inputs: Sequence[str | None], num_outputs: int) -> Types:
    """Return types: statistics and parameters of half-precision data are single precision."""
    data = inputs[0] or WIDE
    wide = WIDE if data in ("float16", "bfloat16") else data
    return Types((data, wide, wide)[:num_outputs], (data, *(wide,) * 4))


def _batch_norm_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    reads = [gradients[0], Entry(node, 1), Entry(node, 2), *node.inputs]
    found = backward("_backward_BatchNorm", node, reads, like=node.inputs[:3])
    none = no_gradient(node)
    return [*found, none, none]


def _layer_norm(call: Call) -> Inferred:
    data = call.data
    axis = call.axis(call.attributes.integer("axis", -1))
    reduced = (*data[:axis], 1, *data[axis + 1 :])
    return Inferred([data, reduced, reduced], [data, (data[axis],), (data[axis],)])


def _layer_norm_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    reads = [gradients[0], node.inputs[0], node.inputs[1], Entry(node, 1), Entry(node, 2)]
    return backward("_backward_LayerNorm", node, reads)


def _group_norm(call: Call) -> Inferred:
    data, groups = call.data, call.attributes.integer("num_groups", 1)
    if groups < 1 or data[1] % groups:
        raise call.wrong(f"{groups} groups of {data[1]} channels")
    return Inferred([data, (data[0], groups), (data[0], groups)], [data, (groups,), (groups,)])


def _instance_norm(call: Call) -> Inferred:
    data = call.data
    statistics = (data[0], data[1])
    return Inferred([data, statistics, statistics], [data, (data[1],), (data[1],)])


def _instance_norm_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    reads = [gradients[0], Entry(node, 1), Entry(node, 2), node.inputs[0], node.inputs[1]]
    return backward("_backward_InstanceNorm", node, reads)


def _l2(call: Call) -> Inferred:
    data, mode = call.data, call.attributes.text("mode", "instance")
    norms = {
        "instance": data[:1],
        "channel": (data[0], *data[2:]),
        "spatial": data[:2],
    }
    if mode not in norms:
        raise call.wrong(f"mode '{mode[:32]}'")
    return Inferred([data, norms[mode]], [data])


def _l2_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    reads = [gradients[0], Entry(node, 0), Entry(node, 1)]
    return backward("_backward_L2Normalization", node, reads, sharing=FIRST)


def _dropout(call: Call) -> Inferred:
    mask = list(call.data)
    for axis in call.attributes.integers("axes"):
        mask[call.axis(axis)] = 1
    return Inferred([call.data, tuple(mask)], [call.data])


def _dropout_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    return backward("_backward_Dropout", node, [gradients[0], Entry(node, 1)], sharing=FIRST)


def _twice(call: Call) -> Inferred:
    return Inferred([call.data, call.data], [call.data])


def _lrn_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    return backward("_backward_LRN", node, [gradients[0], node.inputs[0], Entry(node, 1)])


OPERATORS: dict[str, Operator] = {
    "BatchNorm": Operator(
        infer=_batch_norm,
        gradient=_batch_norm_gradient,
        outputs=always(3),
        types=_batch_norm_types,
        states=(3, 4),
    ),
    "LayerNorm": Operator(
        infer=_layer_norm, gradient=_layer_norm_gradient, outputs=always(3), sharing=FIRST
    ),
    "GroupNorm": Operator(
        infer=_group_norm,
        gradient=lambda node, gradients: backward(
            "_backward_GroupNorm",
            node,
            [gradients[0], node.inputs[0], node.inputs[1], Entry(node, 1), Entry(node, 2)],
        ),
        outputs=always(3),
        sharing=FIRST,
    ),
    "InstanceNorm": Operator(
        infer=_instance_norm,
        gradient=_instance_norm_gradient,
        outputs=always(3),
        is_merged=False,
    ),
    "L2Normalization": Operator(
        infer=_l2, gradient=_l2_gradient, outputs=always(2), is_merged=False
    ),
    "Dropout": Operator(
        infer=_dropout,
        gradient=_dropout_gradient,
        outputs=always(2),
        sharing=FIRST,
        is_merged=False,
    ),
    "LRN": Operator(infer=_twice, gradient=_lrn_gradient, outputs=always(2)),
}
