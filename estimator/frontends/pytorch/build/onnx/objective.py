"""What a graph is trained for: no export says it.

    task, outputs of a first run -> targets, loss

Absent a task: classes of samples, tokens or pixels by the shape of the first output, else a square
error. A single number that comes out is taken as the loss itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.nn import functional

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec, Task

Outputs = tuple[torch.Tensor, ...]
Targets = list[torch.Tensor]
_RANKS: dict[Task, tuple[int, ...]] = {
    Task.IMAGE_CLASSIFICATION: (2,),
    Task.SEQUENCE_CLASSIFICATION: (2,),
    Task.SEMANTIC_SEGMENTATION: (4,),
    Task.CAUSAL_LM: (3,),
    Task.MASKED_LM: (3,),
    Task.TOKEN_CLASSIFICATION: (3,),
    Task.QUESTION_ANSWERING: (2,),
}
"""Rank of the first output that a task's loss takes."""
_ANY = (Task.REGRESSION, Task.FEATURE_EXTRACTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Targets of a batch, without the batch axis, and the loss."""

    loss: Callable[[Outputs, Targets], torch.Tensor]
    made: tuple[tuple[tuple[int, ...], torch.dtype], ...] = field(default=())


def targets_of(
    spec: JobSpec, outputs: Outputs, inputs: list[torch.Tensor], notebook: Notebook
) -> Objective:
    """Return the objective for what came out of a first run.

    Raises:
        UnsupportedJobError: if the task's loss does not take the first output.
    """
    task, first = spec.model.task, outputs[0]
    rank = first.dim()
    if task is not None and rank not in _RANKS.get(task, () if task not in _ANY else (rank,)):
        raise UnsupportedJobError(
            f"model.task: '{task}' is not modelled for a graph whose first output has {rank} axes",
            code=UnknownCode.TASK,
            path="model.task",
        )
    name, found = _taken(task, first, inputs, num_outputs=len(outputs))
    if task is None:
        reason = f"absent: the loss is taken by the shape of the first output, {[*first.shape]}"
        notebook.assume(AssumptionCode.MODEL_DEFAULT, "model.task", name, reason)
    return found


def _taken(
    task: Task | None, first: torch.Tensor, inputs: list[torch.Tensor], *, num_outputs: int
) -> tuple[str, Objective]:
    rank = first.dim()
    if not first.is_floating_point():
        raise UnsupportedJobError(
            "model.config.outputs: the first output is no fraction, so no loss can be taken of it",
            code=UnknownCode.TASK,
            path="model.config.outputs",
        )
    if rank == 0:
        return "the output itself", Objective(loss=lambda outputs, _: outputs[0])
    if task is Task.QUESTION_ANSWERING and num_outputs > 1:
        made = (((), torch.int64),) * 2
        return "spans", Objective(loss=_spans, made=made)
    if task not in _ANY and first.numel():
        if rank == 2:
            made_one = (((), torch.int64),)
            return "classes of samples", Objective(loss=_classes, made=made_one)
        is_tokens = task is not None or not inputs[0].is_floating_point()
        if rank == 3 and is_tokens:
            shape = tuple(first.shape[1:2])
            return "classes of tokens", Objective(loss=_tokens, made=((shape, torch.int64),))
        if rank == 4 and (task is not None or inputs[0].dim() == 4):
            shape = tuple(first.shape[2:])
            return "classes of pixels", Objective(loss=_classes, made=((shape, torch.int64),))
    return "square error", Objective(loss=_square, made=((tuple(first.shape[1:]), first.dtype),))


def _classes(outputs: Outputs, targets: Targets) -> torch.Tensor:
    return functional.cross_entropy(outputs[0], targets[0])


def _tokens(outputs: Outputs, targets: Targets) -> torch.Tensor:
    return functional.cross_entropy(outputs[0].flatten(0, 1), targets[0].flatten())


def _spans(outputs: Outputs, targets: Targets) -> torch.Tensor:
    first = functional.cross_entropy(outputs[0], targets[0])
    return (first + functional.cross_entropy(outputs[1], targets[1])) / 2


def _square(outputs: Outputs, targets: Targets) -> torch.Tensor:
    return functional.mse_loss(outputs[0], targets[0])
