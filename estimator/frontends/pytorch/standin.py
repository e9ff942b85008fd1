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
from estimator.frontends.pytorch.bounds import HOST, INDEXING, LARGEST, ON_CARD, without_masks
from estimator.frontends.pytorch.contents import Contents
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
        self.contents = Contents()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.num_operators += 1
        operator = self.operators.get(func) or self.learn(func)
        result = self.run(func, operator, args, kwargs or {})
        if self.contents.constants:
            self.contents.compute(func, args, kwargs, result)
        return result

    def __enter__(self) -> Any:
        """Run operators from now on.

        `tolist` and `torch.tensor` are none: the first asks what is known, the second goes by the
        host, so that its values are.
        """
        self._own = (torch.Tensor.tolist, torch.tensor, torch.as_tensor)
        setattr(torch.Tensor, "tolist", self._tolist_of())  # noqa: B010 (a method of theirs)
        torch.tensor, torch.as_tensor = _by_host(torch.tensor), _by_host(torch.as_tensor)
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *raised: Any) -> None:
        """Leave everything as it was."""
        tolist, torch.tensor, torch.as_tensor = self._own
        setattr(torch.Tensor, "tolist", tolist)  # noqa: B010
        super().__exit__(*raised)  # type: ignore[no-untyped-call]

    def _tolist_of(self) -> Any:
        own, contents = self._own[0], self.contents

        def tolist(tensor: torch.Tensor) -> Any:
            if not tensor.is_meta:
                return own(tensor)
            if tensor in contents.constants:
                return own(contents.constants[tensor])
            values = contents.values(tensor)
            if values is None or tensor.dim() != 1:
                raise unsupported("Tensor.tolist")
            return values

        return tolist

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
        if host and func not in HOST and (stand_ins or not _is_tiny(host)):
            args, kwargs = _to_meta(args), {name: _to_meta(value) for name, value in kwargs.items()}
            stand_ins = True
        if operator.may_leave and not stand_ins and _is_card(kwargs) and not args[0].is_meta:
            result = call(func, operator, args, kwargs)
            self.contents.keep(result, args[0])
            return result
        if func in ON_CARD and stand_ins:
            args, kwargs = ON_CARD[func](args, kwargs)
        if operator.depends_on_values and stand_ins:
            result = self._bounded(func, operator, args, kwargs)
        else:
            result = call(func, operator, args, kwargs)
        if operator.is_followed:
            self.contents.follow(func, args, result)
        layout = LAYOUTS.get(func)
        return result if layout is None else layout(args, result)

    def _bounded(self, func: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
        """Return the result of an operator that depends on values."""
        if operator.is_read:
            return self.read(operator, args)
        if func in LARGEST:
            self.bounded.add(operator.name)
            return LARGEST[func](self.contents, *args, **kwargs)
        plain = without_masks(self.contents, args)
        if plain is not None:
            self.bounded.add(operator.name)
            args = plain
        return call(func, operator, args, kwargs)

    def read(self, operator: Operator, args: Any) -> Any:
        """Return what reading a stand-in gives: what is known of it, else False.

        Masks are taken to hide something, checks to find nothing.

        Raises:
            UnsupportedJobError: for a number of which nothing is known.
        """
        if operator.name == "aten.equal":
            return False
        values = self.contents.values(args[0])
        if values is not None:
            return bool(values[0]) if args[0].dtype is torch.bool else values[0]
        if args[0].dtype is torch.bool:
            return False
        raise unsupported(operator.name)

    def make(self, func: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
        """Return what a factory makes: a stand-in, or a real tensor if it is a tiny constant."""
        device = kwargs.get("device")
        if device is None or device.type != "meta":
            if operator.is_constant and _num_constant(args) <= TINY:
                return func(*args, **kwargs)
            if not (device is not None and args and args[0] in ([], [1], [0])):
                kwargs = {**kwargs, "device": META}
        result = func(*args, **kwargs)
        if operator.is_followed:
            self.contents.follow(func, args, result)
        return result


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
            raise unsupported(operator.name) from error
        return _to_meta(func(*real_args, **real_kwargs), scalars=True)


def unsupported(name: str) -> UnsupportedJobError:
    """Return the error for an operator that needs values."""
    return UnsupportedJobError(
        f"model: operator '{name}' depends on values, which no trace has",
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


def _is_card(kwargs: Any) -> bool:
    device = kwargs.get("device")
    return device is not None and bool(device.type == "meta")


def _by_host(own: Any) -> Any:
    """Return *own*, which makes a tensor of numbers, with a stop on the host."""

    def made(data: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is None or torch.device(device).type != "meta" or isinstance(data, torch.Tensor):
            return own(data, *args, **kwargs)
        grad = kwargs.pop("requires_grad", False)
        tensor = own(data, *args, **{**kwargs, "device": "cpu"}).to(META)
        return tensor.requires_grad_() if grad else tensor

    return made
