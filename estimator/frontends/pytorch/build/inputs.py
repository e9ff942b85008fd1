"""What a transformers model is fed for its task.

    JobSpec, model, Head -> Inputs

Where several forms are possible the first that the model takes is used: each is tried once, on
stand-ins.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook

from estimator.errors import EstimatorError, UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.beside import described, needed
from estimator.frontends.pytorch.build.forms import forms
from estimator.frontends.pytorch.build.heads import Head
from estimator.frontends.pytorch.build.job import REFUSALS, Batch, Shapes, short, stand_in
from estimator.frontends.pytorch.build.packed import Maker
from estimator.frontends.pytorch.build.sizes import DEFAULT_IMAGE, DETECTION_IMAGE, Sizes
from estimator.frontends.pytorch.build.targets import NAMES, targets
from estimator.notes import UnknownCode
from estimator.spec import JobPhase, JobSpec, Task

TRIED = 2
"""Samples of a batch that is tried out."""

NO_TRAINING = re.compile(r"(?i)\bnot (yet )?support\w* training|\btraining\b.* is not support")
"""What models say that only predict, if they do not raise `NotImplementedError`."""

DOUBTFUL = (Head.CHOICE, Head.PRE_TRAINING)
"""Heads whose batches are tried out even if there is one form only."""

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
    makers = [_combined(maker, label) for label in labels for maker in main]
    makers = [_needed(maker, sizes, model) for maker in makers]
    if len(makers) == 1 and head not in DOUBTFUL:
        return Inputs(make=makers[0])
    for known in (False, True):
        makers += [
            _described(maker, sizes, head, parameters, known=known)
            for maker in makers[: len(labels) * len(main)]
        ]
    return Inputs(make=_first_taken(makers, takes))


def _needed(maker: Maker, sizes: Sizes, model: Any) -> Maker:
    """Return *maker* with what forward has no default for."""
    parameters = inspect.signature(model.forward).parameters.values()
    empty, plain = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
    wanted = {p.name for p in parameters if p.default is empty and p.kind is plain}

    def make(shapes: Shapes) -> Batch:
        batch = maker(shapes)
        missing = wanted - batch.keys()
        return batch | needed(sizes, missing, shapes) if missing else batch

    return make


def _described(maker: Maker, sizes: Sizes, head: Head, names: set[str], *, known: bool) -> Maker:
    def make(shapes: Shapes) -> Batch:
        return described(sizes, maker(shapes), head, names, shapes, known=known)

    return make


def _first_taken(makers: list[Maker], takes: Callable[[Batch], Exception | None]) -> Maker:
    """Return the first maker whose batch the model takes.

    Raises:
        UnsupportedJobError: if it takes none: that it cannot be trained, if it says so, or what it
            says of the form with which it got furthest.
    """
    reasons: list[Exception] = []
    farthest, furthest = 0, 0
    for maker in makers:
        with _calls() as calls:
            try:
                refused = takes(maker(Shapes(batch_size=TRIED)))
            except REFUSALS as error:
                refused = error
        if refused is None:
            return maker
        if len(calls) > furthest:
            farthest, furthest = len(reasons), len(calls)
        reasons.append(refused)
    for reason in reasons:
        if isinstance(reason, NotImplementedError) or NO_TRAINING.search(str(reason)):
            raise UnsupportedJobError(
                f"model.task: the library cannot train this model: {short(reason)}",
                code=UnknownCode.TASK,
                path="model.task",
            ) from reason
    reason = reasons[farthest]
    if isinstance(reason, EstimatorError):
        raise reason
    raise UnsupportedJobError(
        f"input: the model takes none of {len(makers)} forms of input: {short(reason)}",
        code=UnknownCode.INPUT,
        path="input",
    ) from reason


@contextmanager
def _calls() -> Iterator[list[None]]:
    """Yield a list that grows with every module that has run."""
    calls: list[None] = []
    hook = register_module_forward_hook(lambda *_: calls.append(None))
    try:
        yield calls
    finally:
        hook.remove()


def _combined(*makers: Maker) -> Maker:
    def make(shapes: Shapes) -> Batch:
        batch: Batch = {}
        for maker in makers:
            batch.update(maker(shapes))
        return batch

    return make


def _labels(
    spec: JobSpec, sizes: Sizes, model: Any, head: Head, parameters: set[str]
) -> list[Maker]:
    """Return what makes the labels, and the decoder's input where no label stands for it."""
    training = spec.phase is JobPhase.TRAIN
    others: list[Maker] = []
    if "decoder_input_ids" in parameters and not (training and "labels" in parameters):
        others.append(lambda shapes: _decoder(sizes, shapes))
    if training and "return_loss" in parameters:
        others.append(lambda _: {"return_loss": True})
    kinds = targets(sizes, model, head, parameters) if training else [_combined()]
    return [_combined(kind, *others) for kind in kinds]


def _decoder(sizes: Sizes, shapes: Shapes) -> Batch:
    return {"decoder_input_ids": stand_in(shapes.batch_size, sizes.target(), dtype=torch.int64)}
