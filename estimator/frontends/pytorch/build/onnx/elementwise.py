"""Operators that work element by element, and reductions.

    Call -> tensor

Source: onnx/onnx `docs/Operators.md`, release 1.23.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import torch
from torch.nn import functional

from estimator.frontends.pytorch.build.onnx.call import NUMBERED, Call


def _unary(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Call], torch.Tensor]:
    return lambda call: function(call.tensor())


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Call], torch.Tensor]:
    def run(call: Call) -> torch.Tensor:
        left, right = call.operand(0), call.operand(1)
        if not isinstance(left, torch.Tensor) and not isinstance(right, torch.Tensor):
            right = call.tensor(1)
        made: torch.Tensor = function(left, right)
        return made

    return run


def _many(function: Callable[[Any, Any], Any]) -> Callable[[Call], torch.Tensor]:
    """Return what takes any number of operands."""

    def run(call: Call) -> torch.Tensor:
        operands = [call.tensor(index) for index in range(len(call))]
        made: torch.Tensor = reduce(function, operands)
        return made

    return run


def _divided(left: Any, right: Any) -> Any:
    """Return a quotient; of whole numbers, cut off towards zero."""
    is_whole = not any(
        each.is_floating_point() if isinstance(each, torch.Tensor) else isinstance(each, float)
        for each in (left, right)
    )
    return torch.div(left, right, rounding_mode="trunc") if is_whole else left / right


def _mean(call: Call) -> torch.Tensor:
    return _many(torch.add)(call) / len(call)


def _limited(call: Call) -> torch.Tensor:
    low, high = (
        (call.numbers(1), call.numbers(2))
        if len(call.inputs) > 1
        else ([call.fraction("min", -3.4e38)], [call.fraction("max", 3.4e38)])
    )
    least, most = low[0] if low else None, high[0] if high else None
    if least is None and most is None:
        return call.tensor()
    if (least, most) == (0, 6):
        return functional.relu6(call.tensor())
    return torch.clamp(call.tensor(), least, most)


def _gelu(call: Call) -> torch.Tensor:
    return functional.gelu(call.tensor(), approximate=call.word("approximate", "none"))


def _prelu(call: Call) -> torch.Tensor:
    x, slope = call.tensor(0), call.tensor(1)
    return functional.prelu(x, slope.reshape(-1))


def _chosen(call: Call) -> torch.Tensor:
    first, second = call.operand(1), call.operand(2)
    return torch.where(call.tensor(0), first, second)


def _cast(call: Call) -> torch.Tensor:
    number = call.whole("to", 1)
    name = NUMBERED.get(number)
    if name is None:
        raise call.refused(f"casts to type {number}, which is not modelled")
    return call.tensor().to(call.settings.type_of(name))


def _not(x: torch.Tensor) -> torch.Tensor:
    return torch.logical_not(x)


def _dropout(call: Call) -> torch.Tensor:
    found = call.numbers(1)
    rate = found[0] if found else call.fraction("ratio", 0.5)
    return functional.dropout(call.tensor(), min(1.0, max(0.0, rate)), call.is_training)


def _softmax(function: Callable[..., torch.Tensor]) -> Callable[[Call], torch.Tensor]:
    def run(call: Call) -> torch.Tensor:
        x = call.tensor()
        is_old = 0 < call.settings.opset < 13
        axis = call.whole("axis", 1 if is_old else -1) % max(1, x.dim())
        if not is_old or axis == x.dim() - 1:
            return function(x, dim=axis)
        return function(x.flatten(axis), dim=-1).reshape(x.shape)

    return run


def _reduced(function: Callable[..., torch.Tensor]) -> Callable[[Call], torch.Tensor]:
    def run(call: Call) -> torch.Tensor:
        x, axes = call.tensor(), call.axes(1)
        if not axes:
            if axes is not None and call.whole("noop_with_empty_axes", 0):
                return x
            axes = list(range(x.dim()))
        return function(x, axes, bool(call.whole("keepdims", 1)))

    return run


def _product(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    for axis in sorted((axis % max(1, x.dim()) for axis in axes), reverse=True):
        x = x.prod(axis, keepdim=keep)
    return x


def _extreme(which: str) -> Callable[[Call], torch.Tensor]:
    def run(call: Call) -> torch.Tensor:
        found: torch.Tensor = getattr(call.tensor(), which)(
            dim=call.whole("axis", 0), keepdim=bool(call.whole("keepdims", 1))
        )
        return found

    return run


ELEMENTWISE: Mapping[str, Callable[[Call], torch.Tensor]] = {
    "Abs": _unary(torch.abs),
    "Add": _binary(torch.add),
    "And": _binary(torch.logical_and),
    "ArgMax": _extreme("argmax"),
    "ArgMin": _extreme("argmin"),
    "Cast": _cast,
    "CastLike": lambda call: call.tensor(0).to(call.given(1).dtype),
    "Ceil": _unary(torch.ceil),
    "Celu": lambda call: functional.celu(call.tensor(), call.fraction("alpha", 1.0)),
    "Clip": _limited,
    "Cos": _unary(torch.cos),
    "Div": _binary(_divided),
    "Dropout": _dropout,
    "Elu": lambda call: functional.elu(call.tensor(), call.fraction("alpha", 1.0)),
    "Equal": _binary(torch.eq),
    "Erf": _unary(torch.erf),
    "Exp": _unary(torch.exp),
    "Floor": _unary(torch.floor),
    "Gelu": _gelu,
    "Greater": _binary(torch.gt),
    "GreaterOrEqual": _binary(torch.ge),
    "HardSigmoid": _unary(functional.hardsigmoid),
    "HardSwish": _unary(functional.hardswish),
    "Identity": lambda call: call.given(0),
    "IsInf": _unary(torch.isinf),
    "IsNaN": _unary(torch.isnan),
    "LeakyRelu": lambda call: functional.leaky_relu(call.tensor(), call.fraction("alpha", 0.01)),
    "Less": _binary(torch.lt),
    "LessOrEqual": _binary(torch.le),
    "Log": _unary(torch.log),
    "LogSoftmax": _softmax(functional.log_softmax),
    "Max": _many(torch.maximum),
    "Mean": _mean,
    "Min": _many(torch.minimum),
    "Mish": _unary(functional.mish),
    "Mod": _binary(torch.remainder),
    "Mul": _binary(torch.mul),
    "Neg": _unary(torch.neg),
    "Not": _unary(_not),
    "Or": _binary(torch.logical_or),
    "Pow": _binary(torch.pow),
    "PRelu": _prelu,
    "Reciprocal": _unary(torch.reciprocal),
    "ReduceL2": _reduced(lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep)),
    "ReduceLogSumExp": _reduced(torch.logsumexp),
    "ReduceMax": _reduced(torch.amax),
    "ReduceMean": _reduced(torch.mean),
    "ReduceMin": _reduced(torch.amin),
    "ReduceProd": _reduced(_product),
    "ReduceSum": _reduced(torch.sum),
    "ReduceSumSquare": _reduced(lambda x, axes, keep: (x * x).sum(axes, keep)),
    "Relu": _unary(functional.relu),
    "Round": _unary(torch.round),
    "Selu": _unary(functional.selu),
    "Sigmoid": _unary(torch.sigmoid),
    "Sign": _unary(torch.sign),
    "Sin": _unary(torch.sin),
    "Softmax": _softmax(functional.softmax),
    "Softplus": _unary(functional.softplus),
    "Softsign": _unary(functional.softsign),
    "Sqrt": _unary(torch.sqrt),
    "Sub": _binary(torch.sub),
    "Sum": _many(torch.add),
    "Swish": _unary(functional.silu),
    "Tanh": _unary(torch.tanh),
    "Where": _chosen,
    "Xor": _binary(torch.logical_xor),
}
