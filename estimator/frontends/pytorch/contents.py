"""What is known of the values of stand-ins: constants, and the mean of the elements of others.

    operator, arguments, result -> constants, means

A few numbers that were sent to the card, such as the grid of an image, are kept beside their
stand-in, and what follows from them alone is computed.

A mask of experts made by `one_hot` selects one element in so many; a sum over a mask that nothing
is known of counts all of it. That is enough for code that reads counts, loops over experts or sizes
a result by a mask, and it makes routed tokens add up to tokens times choices, spread evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

aten = torch.ops.aten

CONSTANT = 4096
"""Elements up to which the values of a tensor that is sent to the card are kept."""

KEEPS = frozenset(
    {
        aten._reshape_copy.default,
        aten._unsafe_index.Tensor,
        aten._to_copy.default,
        aten._unsafe_view.default,
        aten.alias.default,
        aten.amax.default,
        aten.amin.default,
        aten.clone.default,
        aten.detach.default,
        aten.expand.default,
        aten.index.Tensor,
        aten.max.default,
        aten.min.default,
        aten.permute.default,
        aten.repeat.default,
        aten.select.int,
        aten.slice.Tensor,
        aten.squeeze.default,
        aten.squeeze.dim,
        aten.squeeze.dims,
        aten.t.default,
        aten.transpose.int,
        aten.unbind.int,
        aten.unsqueeze.default,
        aten.upsample_nearest2d.default,
        aten.view.default,
    }
)
"""Operators whose result has the mean of their first argument, elements taken as equal."""

SUMS = frozenset({aten.sum.default, aten.sum.dim_IntList})
SCATTERS = frozenset({aten.scatter_.value, aten.scatter.value, aten.scatter_.src, aten.scatter.src})
FACTS = {aten.isnan.default: Fraction(0), aten.isinf.default: Fraction(0)}
"""Operators whose answer is known of every tensor: nothing overflows in a trace."""

COMPARISONS: dict[Any, Callable[[Fraction, Any], bool]] = {
    aten.all.default: lambda mean, _: mean == 1,
    aten.any.default: lambda mean, _: mean > 0,
    aten.eq.Scalar: lambda mean, value: mean == value,
    aten.ne.Scalar: lambda mean, value: mean != value,
    aten.lt.Scalar: lambda mean, value: mean < value,
    aten.le.Scalar: lambda mean, value: mean <= value,
    aten.ge.Scalar: lambda mean, value: mean >= value,
}

FULL = frozenset({aten.full.default, aten.full_like.default})
ONES = frozenset({aten.ones.default, aten.ones_like.default})
CHECKS = frozenset({aten.eq.Tensor, aten.ge.Scalar, aten.ge.Tensor, aten.gt.Scalar})

FOLLOWED = KEEPS | SUMS | SCATTERS | FULL | ONES | CHECKS | FACTS.keys() | COMPARISONS.keys()


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a tensor's elements, or the most it can be."""

    value: Fraction
    exact: bool


MOST = Mean(Fraction(1), exact=False)
"""A mask of which nothing is known may select everything; it may be written to as well."""


class Contents:
    """What is known of the values of stand-ins."""

    def __init__(self) -> None:
        self.largest = CONSTANT
        """Elements up to which values are kept."""
        self._means: Any = WeakTensorKeyDictionary()
        self.constants: Any = WeakTensorKeyDictionary()
        """Stand-in -> the same tensor with its values."""

    def keep(self, stand_in: torch.Tensor, real: torch.Tensor) -> None:
        """Remember the values of a small tensor that was sent to the card."""
        if real.numel() <= self.largest:
            self.constants[stand_in] = real

    def compute(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Compute *result* beside its stand-in if all arguments have values, forget if not."""
        real = self._real([*args], needed=True)
        made: Any = None
        if real is not None:
            words = {name: _host(value) for name, value in kwargs.items()} if kwargs else {}
            try:
                made = func(*real, **words)
            except (NotImplementedError, RuntimeError, TypeError):
                made = None  # the host has no such kernel: its result stays unknown
        if made is None:
            if func._schema.is_mutable and args and isinstance(args[0], torch.Tensor):
                self._forget(args[0])
            return
        several = isinstance(made, (list, tuple))
        for stand_in, value in zip(result, made, strict=False) if several else ((result, made),):
            both = isinstance(value, torch.Tensor) and isinstance(stand_in, torch.Tensor)
            if both and stand_in.is_meta and value.numel() <= self.largest:
                self.constants[stand_in] = value

    def _forget(self, written: torch.Tensor) -> None:
        """Forget the values of *written* and of every view of it."""
        constant = self.constants.get(written)
        if constant is None:
            return
        place = constant.untyped_storage().data_ptr()
        for stand_in, value in list(self.constants.items()):
            if value.untyped_storage().data_ptr() == place:
                del self.constants[stand_in]

    def signature(self, args: Any) -> tuple[Any, ...]:
        """Return what decides, beside shapes, how large a result of *args* is."""
        known: list[Any] = []
        for value in args:
            if isinstance(value, torch.Tensor):
                known.append(self.mean(value))
            elif isinstance(value, (list, tuple)):
                known.append(self.signature(value))
        return tuple(known)

    def _real(self, values: list[Any], *, needed: bool = False) -> list[Any] | None:
        """Return *values* with constants for stand-ins; None if one has no values."""
        found = not needed
        made: list[Any] = []
        for value in values:
            if isinstance(value, torch.Tensor) and value.is_meta:
                constant = self.constants.get(value)
                if constant is None:
                    return None
                found = True
                made.append(constant)
            elif isinstance(value, (list, tuple)) and any(
                isinstance(v, torch.Tensor) for v in value
            ):
                inner = self._real(list(value))
                if inner is None:
                    return None
                found = True
                made.append(inner)
            else:
                made.append(value)
        return made if found else None

    def mean(self, tensor: torch.Tensor) -> Mean | None:
        """Return the mean of the elements of *tensor*; None: unknown."""
        if not self._means:
            return None
        mean: Mean | None = self._means.get(tensor)
        return mean

    def note_selected(self, mask: torch.Tensor, count: int) -> None:
        """Remember that *mask* selects *count* elements: backward selects them again."""
        self._means[mask] = Mean(Fraction(count, max(1, mask.numel())), exact=False)

    def note_true(self, mask: torch.Tensor) -> None:
        """Remember that every element of *mask* is true."""
        self._means[mask] = Mean(Fraction(1), exact=True)

    def selected(self, mask: torch.Tensor) -> int:
        """Return how many elements *mask* selects: all of them unless something is known."""
        mean = self.mean(mask)
        return mask.numel() if mean is None else ceil(min(mean.value, Fraction(1)) * mask.numel())

    def values(self, tensor: torch.Tensor) -> list[Any] | None:
        """Return the elements, or whole numbers with their mean and sum; None: unknown."""
        constant = self.constants.get(tensor)
        if constant is not None:
            known: list[Any] = constant.flatten().tolist()
            return known
        mean = self.mean(tensor)
        if mean is None:
            return None
        ends = [int(mean.value * index) for index in range(tensor.numel() + 1)]
        return [right - left for left, right in pairwise(ends)]

    def follow(self, func: Any, args: Any, result: Any) -> None:
        """Note what follows for *result* from what is known of *args*."""
        if func in SUMS:
            self._sum(args[0], result)
        elif func in SCATTERS:
            share = Fraction(args[2].numel(), max(1, args[0].numel()))
            self._means[result] = Mean(min(share, Fraction(1)), exact=True)
        elif func is aten.eq.Tensor:
            self._one_hot(args, result)
        elif func in ONES or (func in FULL and args[1] in (1, True)):
            self._means[result] = MOST
        elif func in FACTS:
            self._means[result] = Mean(FACTS[func], exact=True)
        elif _is_check(func, args):
            self._means[result] = Mean(Fraction(1), exact=True)
        elif self._means and isinstance(args[0], torch.Tensor):
            self._carry(func, args, result)

    def _one_hot(self, args: Any, result: Any) -> None:
        """Note that each id equals one of all classes (`one_hot` of a stand-in)."""
        ids, classes = args
        whole = ids.dtype is classes.dtype is torch.int64
        if whole and ids.dim() > 1 and ids.shape[-1] == classes.dim() == 1 < classes.numel():
            self._means[result] = Mean(Fraction(1, classes.numel()), exact=True)

    def _carry(self, func: Any, args: Any, result: Any) -> None:
        mean = self._means.get(args[0])
        if mean is None or (func in COMPARISONS and not mean.exact):
            return
        if func in COMPARISONS:
            mean = Mean(Fraction(COMPARISONS[func](mean.value, args[-1])), exact=True)
        for value in result if isinstance(result, (list, tuple)) else (result,):
            self._means[value] = mean

    def _sum(self, source: torch.Tensor, result: torch.Tensor) -> None:
        mean = self.mean(source)
        if mean is None and source.dtype is torch.bool:
            mean = MOST
        if mean is not None and result.numel():
            share = Fraction(source.numel(), result.numel())
            self._means[result] = Mean(mean.value * share, exact=mean.exact)


def _is_check(func: Any, args: Any) -> bool:
    """Return whether this asks what is true of good data: no negative ids, corners in order."""
    if func is aten.ge.Scalar:
        return not (args[1] or args[0].is_floating_point())
    return func is aten.ge.Tensor and bool(args[0].is_floating_point())


def _host(value: Any) -> Any:
    return torch.device("cpu") if isinstance(value, torch.device) else value
