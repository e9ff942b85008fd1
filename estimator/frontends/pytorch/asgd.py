"""ASGD, whose step reads its own counters: they are one.

    parameters -> Stepper

Source: torch/optim/asgd.py of 2.15.0: the average, and three numbers on the card, a parameter;
the foreach form holds one copy of the parameters twice in turn. Until `t0`, a million steps, the
average is the parameter. The older form (read at amd/ZenDNN-pytorch@efdaddc0; the newer at
pytorch/pytorch@00b13f1c, taken for 2.2) works in place, as the loop does today.
Not modelled: weight decay of that older foreach form, a copy of all gradients; averages after `t0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn, optim
from torch.optim import asgd as torch_asgd

from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.versions import Version

COPIES_SINCE: Version = (2, 2)


class Asgd:
    """torch's own optimizer; what it reads of a counter is one."""

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        *,
        weight_decay: float,
        mode: dict[str, Any],
        version: Version,
    ) -> None:
        if version < COPIES_SINCE:
            mode = {"foreach": False}
        self._optimizer = optim.ASGD(parameters, weight_decay=weight_decay, **mode)

    def step(self) -> None:
        """Update the parameters."""
        with replaced((torch_asgd, "_get_value", _one)):
            self._optimizer.step()


def _one(counter: Any) -> float:  # noqa: ARG001 - what it holds is not known
    return 1.0
