"""Optimizers that cannot run on stand-ins, as rules: what they keep, what they need meanwhile.

    parameter -> state tensors, temporary tensors

One parameter after the other, as their `step()` loops do. Shape letters: R rows, C columns.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch

BLOCK = 256
"""Elements that share one scale in bitsandbytes' 8-bit states."""
LEAST_PAGED = 100_000
"""Elements from which on a state is paged."""
LEAST_8BIT = 4096
"""Smaller tensors keep 32-bit states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Tensors of one parameter: (elements, dtype) each."""

    state: tuple[tuple[int, torch.dtype], ...]
    temporary: tuple[tuple[int, torch.dtype], ...] = ()
    first: tuple[tuple[int, torch.dtype], ...] = ()
    """Temporaries of the first step alone, gone before the others are made."""


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


def lora_fa(parameter: torch.Tensor) -> Needs:
    """Return AdamW's two moments; the gradient is projected in bf16 and widened again.

    Source: huggingface/peft 0.21.2 `optimizers/lorafa.py`. Not modelled: products of rank by rank.
    """
    one, half = (parameter.numel(), parameter.dtype), (parameter.numel(), torch.bfloat16)
    return Needs(state=(one, one), temporary=(half, half, one, one))


GALORE_RANK = 128
"""Rank of GaLore's projections in transformers' Trainer unless `optim_args` says otherwise."""


def galore(parameter: torch.Tensor) -> Needs:
    """Return a projection and Adam's two moments of the projected gradient, for matrices.

    A matrix is projected along its shorter side. The projection is part of a decomposition of the
    gradient in fp32: for fp32 weights it is a view that keeps the whole factor.
    Source: jiaweizzhao/GaLore@1317b5f7 `galore_torch/galore_projector.py` (`std`), `adamw.py`.
    Not modelled: the workspace of the decomposition, which matrices a job chooses (`optim_target_
    modules`): all of them are taken.
    """
    elements = parameter.numel()
    full, one = (elements, torch.float32), (elements, parameter.dtype)
    if parameter.dim() != 2:
        return Needs(state=(one, one), temporary=(one,))
    rows, columns = parameter.shape
    short, long = min(rows, columns), max(rows, columns)
    rank = min(GALORE_RANK, short)
    is_wide = parameter.dtype is torch.float32
    projection = short * short if is_wide else short * rank
    moment = (long * rank, parameter.dtype)
    factors = (*(() if is_wide else (full,)), full, (short * short, torch.float32))
    return Needs(
        state=((projection, parameter.dtype), moment, moment),
        temporary=(moment, moment, one, one),
        first=factors,
    )


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


def _in_32_bits(needs: Needs, elements: int) -> Needs:
    """Return the same moments in fp32, as bitsandbytes keeps them where a module is told to."""
    moments = sum(dtype is torch.uint8 for _, dtype in needs.state) or len(needs.state)
    return Needs(state=((elements, torch.float32),) * moments)


RULES: dict[str, Rule] = {
    "adafactor": adafactor,
    "galore": galore,
    "lamb": lamb,
    "lion": lion,
    "lora-fa": lora_fa,
}
"""Optimizers by rule."""


class RuleOptimizer:
    """Allocates what a rule says: states at the first step, temporaries at each."""

    def __init__(
        self,
        parameters: Sequence[torch.nn.Parameter],
        rule: Rule,
        *,
        wide: Container[int] = (),
        paged: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> None:
        self.parameters = parameters
        self.rule = rule
        self.wide = wide
        """Ids of parameters that keep Adam's states in 32 bits."""
        self.paged = paged
        """What states of large parameters are made in, where they are paged."""
        self.state: dict[int, list[torch.Tensor]] = {}

    def step(self) -> None:
        """Update one parameter after the other."""
        for index, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                continue
            needs = self.rule(parameter)
            if id(parameter) in self.wide:
                needs = _in_32_bits(needs, parameter.numel())
            if index not in self.state:
                _make(needs.first)
                self.state[index] = self._states_of(parameter, needs)
            _make(needs.temporary)

    def _states_of(self, parameter: torch.Tensor, needs: Needs) -> list[torch.Tensor]:
        """Return the states of *parameter*; scales are never paged.

        Source: bitsandbytes 0.50.2 `optim/optimizer.py` (`get_state_buffer`, `init_state`).
        """
        if self.paged is None or parameter.numel() < LEAST_PAGED:
            return _make(needs.state)
        whole = [each for each in needs.state if each[0] == parameter.numel()]
        with self.paged():
            states = _make(whole)
        return states + _make([each for each in needs.state if each not in whole])


def _make(sizes: Sequence[tuple[int, torch.dtype]]) -> list[torch.Tensor]:
    return [torch.empty(elements, dtype=dtype, device="meta") for elements, dtype in sizes]
