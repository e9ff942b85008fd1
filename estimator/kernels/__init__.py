"""Lowering: what library calls take besides their inputs and outputs, on one card.

    Trace, Device, PlanSource -> Program

Never imports a framework; never asks a GPU. cuDNN is asked through a `PlanSource`.
"""

from __future__ import annotations

from estimator.kernels.asked import questions_in, workspaces_of
from estimator.kernels.lowering import End, lower, uses_cudnn
from estimator.kernels.scratch import Block, Scratch, WorkspaceSource, together
from estimator.kernels.versions import version_of

__all__ = [
    "Block",
    "End",
    "Scratch",
    "WorkspaceSource",
    "lower",
    "questions_in",
    "together",
    "uses_cudnn",
    "version_of",
    "workspaces_of",
]
