"""What the trainers of preferences, rewards and teachers make of a model's outputs.

    Built, Other -> Built with its batches, its forward passes and its loss

Which trainers, and what is not modelled: the package's own words.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from estimator.errors import UnsupportedJobError
from estimator.frontends.pytorch.build.job import Batch, Built, Shapes
from estimator.notes import UnknownCode
from estimator.spec.vocabulary import Objective

BETA = 0.5
TEMPERATURE = 0.9
"""GKD's defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """The model a policy is compared with."""

    score: Callable[[Batch], torch.Tensor]
    """Its logits for a batch; called without gradients."""
    companions: tuple[nn.Module, ...] = ()


def _paired(built: Built) -> Callable[[Shapes], Batch]:
    """Return what makes batches of pairs, chosen before rejected."""
    return lambda shapes: built.make_batch(replace(shapes, batch_size=2 * shapes.batch_size))


def _inputs(built: Built, batch: Batch) -> Batch:
    """Return what of *batch* a model is fed: its labels are the trainer's."""
    return {name: value for name, value in batch.items() if name not in built.targets}


def logits_of(
    built: Built, model: nn.Module, batch: Batch, way: AbstractContextManager[None] | None = None
) -> torch.Tensor:
    with way or nullcontext():
        logits: torch.Tensor = built.forward(model, _inputs(built, batch)).logits
    return logits


def _forward(built: Built) -> Callable[[nn.Module, Batch], Any]:
    return lambda model, batch: built.forward(model, _inputs(built, batch))


def selective_log_softmax(logits: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of each token of *index*: (texts, tokens)."""
    if logits.dtype is torch.float32:
        chosen = torch.gather(logits, dim=-1, index=index.unsqueeze(-1)).squeeze(-1)
        return chosen - torch.stack([torch.logsumexp(each, dim=-1) for each in logits])
    rows = []
    for row, labels in zip(logits, index, strict=True):
        scores = functional.log_softmax(row, dim=-1)
        rows.append(scores.gather(dim=-1, index=labels.unsqueeze(-1)).squeeze(-1))
    return torch.stack(rows)


def _dpo(built: Built, other: Other | None) -> Built:
    def loss(outputs: Any, batch: Batch) -> torch.Tensor:
        labels = batch["input_ids"][..., 1:].contiguous()
        # The trainer's variables hold both copies of the logits until the loss is there.
        shifted = outputs.logits[..., :-1, :].contiguous()
        own = selective_log_softmax(shifted, labels).sum(dim=1)
        assert other is not None
        with torch.no_grad():
            scored = other.score(batch)
        compared = scored[..., :-1, :].contiguous()
        ratios = own - selective_log_softmax(compared, labels).sum(dim=1)
        chosen, rejected = ratios.chunk(2)
        loss = -functional.logsigmoid(chosen - rejected).mean()
        del shifted, scored, compared
        return loss

    return replace(built, make_batch=_paired(built), forward=_forward(built), loss=loss)


def _orpo(built: Built, _: Other | None) -> Built:
    def loss(outputs: Any, batch: Batch) -> torch.Tensor:
        logits, labels = outputs.logits, batch["input_ids"]
        half = logits.shape[0] // 2
        flat = logits[:half, :-1, :].contiguous().view(-1, logits.shape[-1])
        likelihood = functional.cross_entropy(flat, labels[:half, 1:].reshape(-1))
        scores = logits[:, :-1, :].log_softmax(-1)
        found = torch.gather(scores, dim=2, index=labels[:, 1:].unsqueeze(2)).squeeze(2)
        chosen, rejected = found.mean(-1).chunk(2)
        odds = chosen - rejected
        odds = odds - torch.log1p(-torch.exp(chosen)) + torch.log1p(-torch.exp(rejected))
        return likelihood - functional.logsigmoid(odds).mean()

    return replace(built, make_batch=_paired(built), forward=_forward(built), loss=loss)


def _kto(built: Built, other: Other | None) -> Built:
    def likelihoods(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
        return selective_log_softmax(logits[:, :-1, :], batch["input_ids"][:, 1:].clone()).sum(-1)

    def forward(model: nn.Module, batch: Batch) -> Any:
        with torch.no_grad():
            mismatched = logits_of(built, model, batch)
        divergence = likelihoods(mismatched, batch)
        logits = logits_of(built, model, batch)
        return {"logits": logits, "mismatched": mismatched, "divergence": divergence}

    def loss(outputs: Any, batch: Batch) -> torch.Tensor:
        own = likelihoods(outputs["logits"], batch)
        del outputs["mismatched"]
        ordered = outputs["logits"].clone()  # the rows of wanted texts, then of unwanted ones
        assert other is not None
        with torch.no_grad():
            mismatched = other.score(batch)
            divergence = likelihoods(mismatched, batch)
            reference = likelihoods(other.score(batch), batch)
        del mismatched, ordered
        gap = (outputs["divergence"] - divergence).mean().clamp(min=0)
        return (1 - torch.sigmoid(own - reference - gap)).mean()

    return replace(built, forward=forward, loss=loss)


def _reward(built: Built, _: Other | None) -> Built:
    def loss(outputs: Any, __: Batch) -> torch.Tensor:
        chosen, rejected = outputs.logits.squeeze(-1).chunk(2)
        return -functional.logsigmoid(chosen - rejected).mean()

    return replace(built, make_batch=_paired(built), forward=_forward(built), loss=loss)


def _distill(built: Built, other: Other | None) -> Built:
    def loss(outputs: Any, batch: Batch) -> torch.Tensor:
        assert other is not None
        with torch.no_grad():
            taught = other.score(batch)[:, :-1, :]
        own = outputs.logits[:, :-1, :]
        if taught.shape != own.shape:
            raise UnsupportedJobError(
                f"model.companions[0]: a teacher with {taught.shape[-1]} tokens does not score "
                f"those of a student with {own.shape[-1]}",
                code=UnknownCode.OBJECTIVE,
                path="model.companions[0]",
            )
        learnt = functional.log_softmax(own / TEMPERATURE, dim=-1)
        known = functional.log_softmax(taught / TEMPERATURE, dim=-1)
        mixed = torch.logsumexp(torch.stack([learnt + BETA, known + BETA]), dim=0)
        of_teacher = functional.kl_div(mixed, known, reduction="none", log_target=True)
        of_student = functional.kl_div(mixed, learnt, reduction="none", log_target=True)
        divergence = BETA * of_teacher + (1 - BETA) * of_student
        total: torch.Tensor = divergence.sum() / own.shape[0]
        return total

    return replace(built, forward=_forward(built), loss=loss)


MAKERS: dict[Objective, Callable[[Built, Other | None], Built]] = {
    Objective.DPO: _dpo,
    Objective.ORPO: _orpo,
    Objective.KTO: _kto,
    Objective.REWARD: _reward,
    Objective.DISTILL: _distill,
}
