"""A job that can be run on stand-ins: its model, its batches, its loss.

JobSpec -> Built
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from estimator.errors import EstimatorError, UnsupportedJobError
from estimator.notes import UnknownCode

Batch = dict[str, Any]

REFUSALS = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a model raises that is fed something it does not take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """How large one batch is. Absent lengths are the job's own."""

    batch_size: int
    sequence_length: int | None = None


def nothing(_: Shapes) -> None:
    """Run nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What the phases of a run need of a model."""

    model: nn.Module
    make_batch: Callable[[Shapes], Batch]
    """A batch of tensors on the card; called while the recorder watches."""
    forward: Callable[[nn.Module, Batch], Any]
    loss: Callable[[Any, Batch], torch.Tensor]
    targets: tuple[str, ...] = ()
    """Keys of a batch that only training needs."""
    checkpoint: Callable[[bool | None], None] | None = None
    """Turns on full gradient checkpointing; None: this model has no such switch."""
    library: str = "torch"
    """Whose model classes these are."""
    is_at_most: bool = False
    """How many boxes or masks there are depends on values: there may be far fewer."""
    is_formula: bool = False
    """The model is a description of the job's own, not what it runs: a wider interval."""
    companions: tuple[nn.Module, ...] = ()
    """Frozen models on the same card, in the order they are loaded."""
    run_companions: Callable[[Shapes], None] = nothing
    """Runs those that run by themselves in every step, without gradients."""
    keeps_last: bool = True
    """Generation computes the logits of the last position only, where the model can."""
    changes: Callable[[], AbstractContextManager[None]] = nullcontext
    """What has to be otherwise in the library while this model runs."""


def run_forward(built: Built, batch: Batch) -> Any:
    """Return the model's outputs for *batch*.

    Raises:
        UnsupportedJobError: if the model does not take such a batch: a real run would fail alike.
    """
    try:
        return built.forward(built.model, batch)
    except EstimatorError:
        raise
    except REFUSALS as error:
        raise UnsupportedJobError(
            f"input: the model's forward pass fails on it: {short(error)}",
            code=UnknownCode.INPUT,
            path="input",
        ) from error


def short(error: Exception) -> str:
    """Return *error* as one short line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:299] + "…"


def stand_in(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a new tensor on the stand-in for the card."""
    return torch.empty(shape, dtype=dtype, device="meta")
