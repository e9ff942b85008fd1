"""Optimizers that cannot run on stand-ins, as rules: what they keep, what they need meanwhile.

    parameter -> state tensors, temporary tensors

One parameter after the other, as their `step()` loops do. Shape letters: R rows, C columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

BLOCK = 256
"""Elements that share one scale in bitsandbytes' 8-bit states."""
LEAST_8BIT = 4096
"""Smaller tensors keep 32-bit states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Tensors of one parameter: (elements, dtype) each."""

    state: tuple[tuple[int, torch.dtype], ...]
    temporary: tuple[tuple[int, torch.dtype], ...] = ()


Rule = Callable[[torch.Tensor], Needs]


def adafactor(parameter: torch.Tensor) -> Needs:
    """Return rows and columns of second moments in fp32; momentum is off, as by default.

    Source: transformers `optimization.py` and torch `optim/_adafactor.py`: the squared gradient,
    the update, and the parameter in fp32 exist at once for one tensor.
    Not modelled: relative step scalars.
    """
    shape = parameter.shape
    elements = parameter.numel()
    if parameter.dim() < 2:
        return Needs(state=((elements, torch.float32),), temporary=((elements, torch.float32),) * 2)
    rows, columns = elements // shape[-1], elements // shape[-2]
    copies = 2 if parameter.dtype is torch.float32 else 4
    return Needs(
        state=((rows, torch.float32), (columns, torch.float32)),
        temporary=((elements, torch.float32),) * copies,
    )


def lion(parameter: torch.Tensor) -> Needs:
    """Return one momentum in the parameter's dtype; the update is one tensor.

    Source: lion-pytorch `lion_pytorch.py` (`update_fn`).
    """
    one = (parameter.numel(), parameter.dtype)
    return Needs(state=(one,), temporary=(one,))


def lamb(parameter: torch.Tensor) -> Needs:
    """Return Adam's two moments; the update and its norm's input are two tensors.

    Source: timm `optim/lamb.py`, for-loop form.
    """
    one = (parameter.numel(), parameter.dtype)
    return Needs(state=(one, one), temporary=(one, one))


def adam_8bit(parameter: torch.Tensor) -> Needs:
    """Return two 8-bit moments with a scale a block; small tensors keep fp32.

    Source: bitsandbytes 0.50.2 `optim/optimizer.py` (`Optimizer2State.init_state`).
    """
    return _eight_bit(parameter, moments=2)


def lion_8bit(parameter: torch.Tensor) -> Needs:
    """Return one 8-bit moment with a scale a block (`Optimizer1State.init_state`)."""
    return _eight_bit(parameter, moments=1)


def _eight_bit(parameter: torch.Tensor, *, moments: int) -> Needs:
    elements = parameter.numel()
    if elements < LEAST_8BIT:
        return Needs(state=((elements, torch.float32),) * moments)
    scale = (-(-elements // BLOCK), torch.float32)
    return Needs(state=((elements, torch.uint8), scale) * moments)


RULES: dict[str, Rule] = {"adafactor": adafactor, "lion": lion, "lamb": lamb}
"""Optimizers by rule."""


class RuleOptimizer:
    """Allocates what a rule says: states at the first step, temporaries at each."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter], rule: Rule) -> None:
        self.parameters = parameters
        self.rule = rule
        self.state: dict[int, list[torch.Tensor]] = {}

    def step(self) -> None:
        """Update one parameter after the other."""
        for index, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                continue
            needs = self.rule(parameter)
            if index not in self.state:
                self.state[index] = _make(needs.state)
            _make(needs.temporary)


def _make(sizes: Sequence[tuple[int, torch.dtype]]) -> list[torch.Tensor]:
    return [torch.empty(elements, dtype=dtype, device="meta") for elements, dtype in sizes]
