"""Muon over matrices, and AdamW over everything else.

    parameters -> Stepper

Muon takes matrices only: `torch.optim.Muon` refuses anything else, and its documentation gives
the rest to AdamW. Both are torch's own and run as they are, one after the other.
Source: torch/optim/_muon.py of 2.15.0: one momentum in the gradient's dtype; for one matrix at a
time the update, its bf16 copy and two of the smaller side squared. It has no foreach form.
Not modelled: embeddings and heads given to AdamW, which are matrices too; convolutions flattened
to matrices and the sums out of place of packages of the same name (KellerJordan/Muon `muon.py`).
"""

from __future__ import annotations

from typing import Any, Protocol

from torch import nn, optim

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.versions import Version
from estimator.notes import AssumptionCode
from estimator.spec import Optimizer

SINCE: Version = (2, 9)
"""First version with `torch.optim.Muon`."""
MOMENTUM = 0.95


class _Step(Protocol):
    def step(self) -> Any: ...


class Muon:
    """Two optimizers, each over its own parameters."""

    def __init__(
        self, parameters: list[nn.Parameter], spec: Optimizer, mode: dict[str, Any]
    ) -> None:
        matrices = [p for p in parameters if p.dim() == 2]
        others = [p for p in parameters if p.dim() != 2]
        decay: dict[str, Any] = {}
        if spec.weight_decay is not None:
            decay["weight_decay"] = spec.weight_decay
        self._parts: list[_Step] = []
        if matrices:
            self._parts.append(optim.Muon(matrices, momentum=spec.momentum or MOMENTUM, **decay))
        if others:
            self._parts.append(optim.AdamW(others, **decay, **mode))

    def step(self) -> None:
        """Update the matrices, then the rest."""
        for part in self._parts:
            part.step()


def note_split(notebook: Notebook, version: Version) -> None:
    """Write down who gets which parameters: no field of a spec says."""
    major, minor = version
    package = "" if version >= SINCE else f"; torch {major}.{minor} has no Muon of its own"
    notebook.assume(
        AssumptionCode.DEFAULT,
        "training.optimizer.name",
        "muon",
        "matrices go to Muon, embeddings among them, everything else to AdamW, as torch's own "
        f"example does; what is given to AdamW instead keeps one copy of itself more{package}",
    )
