"""L-BFGS by rule: what its history holds once it is full.

    parameters -> Stepper

Its `step` runs forward and backward itself, several times, and stops by values; a trace has
neither. What it holds meanwhile does not depend on them: vectors as long as all parameters.
Source: torch/optim/lbfgs.py of 2.15.0 (`LBFGS.step`, defaults of `__init__`).
Not modelled: another `history_size`, which no field of a spec tells; the line search's copies.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode

HISTORY = 100
"""`history_size`: directions kept, and as many steps. Twenty are made in one step."""
BESIDE = 3
"""The direction, the gradient and the one before: alive while forward and backward run."""
MEANWHILE = 3
"""A new direction and step before the oldest go, and the search's buffer."""


class Lbfgs:
    """Makes a full history at the first step, and three vectors more at each."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        self._parameters = parameters
        self._history: list[torch.Tensor] = []

    def step(self) -> None:
        """Hold what one more step holds."""
        if not self._history:
            self._history = self._vectors(2 * HISTORY + BESIDE)
        self._vectors(MEANWHILE)

    def _vectors(self, count: int) -> list[torch.Tensor]:
        first = self._parameters[0]
        elements = sum(p.numel() for p in self._parameters)
        return [torch.empty(elements, dtype=first.dtype, device="meta") for _ in range(count)]


def note_history(notebook: Notebook) -> None:
    """Write down the history's length: no field of a spec says it."""
    notebook.assume(
        AssumptionCode.DEFAULT,
        "training.optimizer.name",
        "lbfgs",
        f"a history of {HISTORY} directions and steps, the default, full: each is as large as all "
        "trained parameters",
    )
