"""Tensors of the `meta` device stand in for tensors on the card.

    operator call -> the same call without data

Models are built and run on `meta`: shapes and strides are exact, memory is never touched, autograd
works as usual. This mode lets code run that mixes in host tensors or reads tiny constants:
factories that name no device give stand-ins, except tiny `arange` and `linspace`, which are real;
host tensors that meet stand-ins become stand-ins; reading a truth value of a stand-in gives False;
results whose size depends on values are taken at their largest (`bounds.py`).

Why not FakeTensorMode: it costs 30 to 40 µs an operator more, and fake `cuda` tensors cannot run
backward without a card (torch 2.15.0). Not modelled: reading numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from estimator.errors import UnsupportedJobError
from estimator.frontends.pytorch.bounds import INDEXING, LARGEST, without_masks
from estimator.frontends.pytorch.cuda_rules.layout import LAYOUTS
from estimator.frontends.pytorch.operators import Operator, operator_of
from estimator.frontends.pytorch.outcome import META
from estimator.notes import UnknownCode

TINY = 4096
"""Elements up to which a host constant is computed for real."""
FALLBACK = 1 << 22
"""Elements up to which an operator without a shape rule runs on real zeros."""


class StandIn(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs operators on stand-ins; the recorder adds the bookkeeping."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operators: dict[Any, Operator] = {}
        self.num_operators = 0
        self.bounded: set[str] = set()
        """Operators whose results were taken at their largest."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.num_operators += 1
        operator = self.operators.get(func) or self.learn(func)
        return self.run(func, operator, args, kwargs or {})

    def learn(self, func: Any) -> Operator:
        """Return what is known of *func*, looking it up once."""
        operator = self.operators[func] = operator_of(func)
        operator.depends_on_values = operator.is_read or func in LARGEST or func in INDEXING
        return operator

    def run(self, func: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
        """Return the result of *func*, sorting out host tensors first."""
        if operator.is_factory:
            return self.make(func, operator, args, kwargs)
        host, stand_ins = _sort(args, kwargs)
        if host and (stand_ins or not _is_tiny(host)):
            args, kwargs = _to_meta(args), {name: _to_meta(value) for name, value in kwargs.items()}
            stand_ins = True
        if operator.depends_on_values and stand_ins:
            if operator.is_read:
                return _read(operator, args)
            if func in LARGEST:
                self.bounded.add(operator.name)
                return LARGEST[func](*args, **kwargs)
            plain = without_masks(args)
            if plain is not None:
                self.bounded.add(operator.name)
                args = plain
        result = call(func, operator, args, kwargs)
        layout = LAYOUTS.get(func)
        return result if layout is None else layout(args, result)

    def make(self, func: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
        """Return what a factory makes: a stand-in, or a real tensor if it is a tiny constant."""
        device = kwargs.get("device")
        if device is None or device.type != "meta":
            if operator.is_constant and _num_constant(args) <= TINY:
                return func(*args, **kwargs)
            if not (device is not None and args and args[0] in ([], [1], [0])):
                kwargs = {**kwargs, "device": META}
        return func(*args, **kwargs)


def call(func: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
    """Return *func* of the arguments; without a shape rule, that of small real zeros.

    Raises:
        UnsupportedJobError: if the operator's results depend on values.
    """
    try:
        return func(*args, **kwargs)
    except NotImplementedError as error:
        reals = [0]
        real_args = _to_zeros(args, reals)
        real_kwargs = {name: _to_zeros(value, reals) for name, value in kwargs.items()}
        if reals[0] > FALLBACK or torch.Tag.dynamic_output_shape in func.tags:
            raise _unsupported(operator) from error
        return _to_meta(func(*real_args, **real_kwargs), scalars=True)


def _read(operator: Operator, args: Any) -> Any:
    """Return False for a truth value: masks are taken to hide something, checks to find nothing."""
    if operator.name == "aten.equal" or args[0].dtype is torch.bool:
        return False
    raise _unsupported(operator)


def _unsupported(operator: Operator) -> UnsupportedJobError:
    return UnsupportedJobError(
        f"model: operator '{operator.name}' depends on values, which no trace has",
        code=UnknownCode.OPERATOR,
        path="model",
    )


def _sort(args: Any, kwargs: Any) -> tuple[list[torch.Tensor], bool]:
    """Return the real tensors with an axis among the arguments, and whether stand-ins are."""
    host: list[torch.Tensor] = []
    stand_ins = False
    stack = [*args, *kwargs.values()]
    while stack:
        value = stack.pop()
        if isinstance(value, torch.Tensor):
            if value.is_meta:
                stand_ins = True
            elif value.dim():
                host.append(value)
        elif isinstance(value, (list, tuple)):
            stack.extend(value)
    return host, stand_ins


def _is_tiny(host: list[torch.Tensor]) -> bool:
    """Return whether operators on *host* may run for real, products of their shapes included."""
    if any(tensor.numel() > TINY for tensor in host):
        return False
    if len(host) < 2:
        return True
    try:
        shape = torch.broadcast_shapes(*(t.shape for t in host))  # type: ignore[no-untyped-call]
    except RuntimeError:
        return True
    elements = 1
    for size in shape:
        elements *= size
    return elements <= TINY * 16


def _num_constant(args: Any) -> float:
    numbers = [abs(value) for value in args if isinstance(value, (int, float))]
    return max(numbers, default=0)


def _to_meta(value: Any, *, scalars: bool = False) -> Any:
    if isinstance(value, torch.Tensor):
        if value.is_meta or not (scalars or value.dim()):
            return value
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=META)
    if isinstance(value, (list, tuple)):
        return type(value)(_to_meta(item, scalars=scalars) for item in value)
    return value


def _to_zeros(value: Any, count: list[int]) -> Any:
    if isinstance(value, torch.Tensor) and value.is_meta:
        count[0] += value.numel()
        if count[0] > FALLBACK:
            return value
        return torch.zeros(value.shape, dtype=value.dtype)
    if isinstance(value, (list, tuple)):
        return type(value)(_to_zeros(item, count) for item in value)
    return torch.device("cpu") if value == META else value
