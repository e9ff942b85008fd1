"""What a transformers model is fed for its task.

    JobSpec, model, Head -> Inputs

Where several forms are possible the first that the model takes is used: each is tried once, on
stand-ins.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from estimator.errors import EstimatorError, UnsupportedJobError
from estimator.frontends.pytorch.build.forms import forms
from estimator.frontends.pytorch.build.heads import Head
from estimator.frontends.pytorch.build.job import REFUSALS, Batch, Shapes, short, stand_in
from estimator.frontends.pytorch.build.pictures import Maker
from estimator.frontends.pytorch.build.sizes import DEFAULT_IMAGE, DETECTION_IMAGE, Sizes
from estimator.frontends.pytorch.build.targets import NAMES, targets
from estimator.frontends.pytorch.notebook import Notebook
from estimator.notes import UnknownCode
from estimator.spec import JobPhase, JobSpec, Task

TRIED = 2
"""Samples of a batch that is tried out."""

TEXT_TASKS = (
    Task.CAUSAL_LM,
    Task.MASKED_LM,
    Task.SEQUENCE_CLASSIFICATION,
    Task.REGRESSION,
    Task.TOKEN_CLASSIFICATION,
    Task.QUESTION_ANSWERING,
)
"""Tasks for which a model that also sees or hears is taken to be fed text alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """How to make a batch, and which of its keys only training needs."""

    make: Maker
    targets: tuple[str, ...] = NAMES


def make_inputs(
    spec: JobSpec,
    model: Any,
    head: Head,
    notebook: Notebook,
    *,
    takes: Callable[[Batch], Exception | None],
) -> Inputs:
    """Return what feeds *model*. *takes* tries a batch and returns why the model refuses it.

    Raises:
        UnsupportedJobError: if nothing is known to feed it.
    """
    parameters = set(inspect.signature(model.forward).parameters)
    edge = DETECTION_IMAGE if head in (Head.BOXES, Head.MASKS) else DEFAULT_IMAGE
    sizes = Sizes(spec, model.config, notebook, default_image=edge)
    visual = spec.model.task not in TEXT_TASKS
    main = forms(sizes, model, head, parameters, visual=visual)
    if not main:
        raise UnsupportedJobError(
            f"model.task: inputs of '{model.config.model_type}' "
            f"({type(model).__name__}) are not modelled",
            code=UnknownCode.TASK,
            path="model.task",
        )
    labels = _labels(spec, sizes, model, head, parameters)
    makers = [_combined(maker, labels) for maker in main]
    return Inputs(make=makers[0] if len(makers) == 1 else _first_taken(makers, takes))


def _first_taken(makers: list[Maker], takes: Callable[[Batch], Exception | None]) -> Maker:
    """Return the first maker whose batch the model takes.

    Raises:
        UnsupportedJobError: if it takes none, with what it says of the likeliest.
    """
    reasons: list[Exception] = []
    for maker in makers:
        try:
            refused = takes(maker(Shapes(batch_size=TRIED)))
        except REFUSALS as error:
            refused = error
        if refused is None:
            return maker
        reasons.append(refused)
    if isinstance(reasons[0], EstimatorError):
        raise reasons[0]
    raise UnsupportedJobError(
        f"input: the model takes none of {len(makers)} forms of input: {short(reasons[0])}",
        code=UnknownCode.INPUT,
        path="input",
    ) from reasons[0]


def _combined(main: Maker, labels: list[Maker]) -> Maker:
    def make(shapes: Shapes) -> Batch:
        batch = main(shapes)
        for maker in labels:
            batch.update(maker(shapes))
        return batch

    return make


def _labels(
    spec: JobSpec, sizes: Sizes, model: Any, head: Head, parameters: set[str]
) -> list[Maker]:
    """Return what makes the labels, and the decoder's input where no label stands for it."""
    training = spec.phase is JobPhase.TRAIN
    makers: list[Maker] = []
    if training:
        makers.append(targets(sizes, model, head, parameters))
    if "decoder_input_ids" in parameters and not (training and "labels" in parameters):
        makers.append(lambda shapes: _decoder(sizes, shapes))
    if training and "return_loss" in parameters:
        makers.append(lambda _: {"return_loss": True})
    return makers


def _decoder(sizes: Sizes, shapes: Shapes) -> Batch:
    return {"decoder_input_ids": stand_in(shapes.batch_size, sizes.target(), dtype=torch.int64)}
