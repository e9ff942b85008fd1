"""Lowering: what library calls take besides their inputs and outputs, on one card.

    Trace, Device -> Program

Never imports a framework; never asks a GPU.
"""

from __future__ import annotations

from estimator.kernels.lowering import lower, uses_cudnn
from estimator.kernels.scratch import Block, Scratch, WorkspaceSource

__all__ = ["Block", "Scratch", "WorkspaceSource", "lower", "uses_cudnn"]
