"""Optimizers: those of torch run as they are, others by rule.

    JobSpec, parameters -> Stepper

`foreach` is CUDA's default since torch 2.0, so it is forced while tracing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import optim

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.asgd import Asgd
from estimator.frontends.pytorch.lbfgs import Lbfgs, note_history
from estimator.frontends.pytorch.muon import Muon, note_split
from estimator.frontends.pytorch.optimizer_rules import (
    GALORE_RANK,
    RULES,
    RuleOptimizer,
    adam_8bit,
    lion_8bit,
)
from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.versions import Version
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec, ModelSource, Optimizer

FOREACH_DEFAULT_SINCE = (2, 0)
IN_PLACE_SINCE = (2, 1)
"""First version whose foreach Adam and its kin add epsilon to the root in place.

Source: `_multi_tensor_adam` and its kin in torch/optim of the wheels 1.13.1, 2.0.1 and 2.1.2.
"""
WITH_ROOT = frozenset({"adam", "adamw", "nadam", "radam"})
FUSED = frozenset({"sgd", "adam", "adamw", "adagrad"})


class Stepper(Protocol):
    """What a training step needs of an optimizer."""

    def step(self) -> Any:
        """Update the parameters from their gradients."""
        ...


class _TwoCopies:
    """A foreach step that holds the root of the second moments and the denominator at once."""

    def __init__(self, optimizer: Stepper) -> None:
        self._optimizer = optimizer

    def step(self) -> None:
        """Update the parameters; the denominators go when the step is done."""
        in_place = torch._foreach_add_
        denominators: list[Any] = []

        def add(tensors: Any, addend: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(addend, float) and tensors[0].is_meta and tensors[0].dim():
                denominators.append(torch._foreach_add(tensors, addend))
                return None
            return in_place(tensors, addend, *args, **kwargs)

        with replaced((torch, "_foreach_add_", add)):
            self._optimizer.step()


Parameters = Sequence[torch.nn.Parameter]
Maker = Callable[[Parameters, Optimizer, dict[str, Any]], Stepper]


def _sgd(parameters: Parameters, spec: Optimizer, mode: dict[str, Any]) -> Stepper:
    return optim.SGD(
        parameters,
        lr=0.1,
        momentum=spec.momentum or (0.9 if spec.nesterov else 0.0),
        nesterov=spec.nesterov,
        weight_decay=spec.weight_decay or 0.0,
        **mode,
    )


def _adam(parameters: Parameters, spec: Optimizer, mode: dict[str, Any]) -> Stepper:
    decay = spec.weight_decay or 0.0
    return optim.Adam(parameters, amsgrad=spec.amsgrad, weight_decay=decay, **mode)


def _adamw(parameters: Parameters, spec: Optimizer, mode: dict[str, Any]) -> Stepper:
    decay = 0.01 if spec.weight_decay is None else spec.weight_decay
    return optim.AdamW(parameters, amsgrad=spec.amsgrad, weight_decay=decay, **mode)


def _rmsprop(parameters: Parameters, spec: Optimizer, mode: dict[str, Any]) -> Stepper:
    return optim.RMSprop(
        parameters,
        momentum=spec.momentum,
        centered=spec.centered,
        weight_decay=spec.weight_decay or 0.0,
        **mode,
    )


def _plain(kind: Any) -> Maker:
    def make(parameters: Parameters, spec: Optimizer, mode: dict[str, Any]) -> Stepper:
        stepper: Stepper = kind(parameters, weight_decay=spec.weight_decay or 0.0, **mode)
        return stepper

    return make


def _rprop(parameters: Parameters, _: Optimizer, mode: dict[str, Any]) -> Stepper:
    return optim.Rprop(parameters, **mode)


def _muon(parameters: Parameters, spec: Optimizer, mode: dict[str, Any]) -> Stepper:
    return Muon(list(parameters), spec, mode)


TORCH: dict[str, Maker] = {
    "sgd": _sgd,
    "adam": _adam,
    "adamw": _adamw,
    "nadam": _plain(optim.NAdam),
    "radam": _plain(optim.RAdam),
    "adamax": _plain(optim.Adamax),
    "rmsprop": _rmsprop,
    "adagrad": _plain(optim.Adagrad),
    "adadelta": _plain(optim.Adadelta),
    "rprop": _rprop,
    "muon": _muon,
}
"""Names of torch.optim's optimizers, and what makes them."""

WITH_VALUES = frozenset({"asgd", "lbfgs"})
"""Those of torch.optim whose step reads values, made each in its own way."""

REFUSED = {"sparse_adam": "it takes sparse gradients only, which no model built here has"}
"""Why what is left of torch.optim is not modelled."""

ALIASES: dict[str, tuple[str, dict[str, Any]]] = {
    "adamw_torch": ("adamw", {}),
    "adamw_hf": ("adamw", {"foreach": False}),
    "adamw_torch_fused": ("adamw", {"fused": True}),
    "adamw_8bit": ("adamw", {"bits": 8}),
    "adamw_bnb_8bit": ("adamw", {"bits": 8}),
    "paged_adamw": ("adamw", {"paged": True}),
    "paged_adamw_32bit": ("adamw", {"paged": True}),
    "paged_adamw_8bit": ("adamw", {"bits": 8, "paged": True}),
    "lion_8bit": ("lion", {"bits": 8}),
    "paged_lion_8bit": ("lion", {"bits": 8, "paged": True}),
    "adam8bit": ("adam", {"bits": 8}),
    "adamw8bit": ("adamw", {"bits": 8}),
    "galore_adamw": ("galore", {}),
    "lorafa": ("lora-fa", {}),
    "sparseadam": ("sparse_adam", {}),
}
"""Names trainers use for the same."""

EIGHT_BIT = {"adam": adam_8bit, "adamw": adam_8bit, "lion": lion_8bit}


def known_optimizers() -> tuple[str, ...]:
    """Return the names that are modelled."""
    return tuple(sorted({*TORCH, *WITH_VALUES, *RULES}))


def require_known(spec: Optimizer) -> Optimizer:
    """Return *spec* under torch's own name.

    Raises:
        UnsupportedJobError: if the optimizer, or its storage in 8 bits, is not modelled.
    """
    lower = spec.name.lower()
    name, changes = ALIASES.get(lower, (lower, {}))
    bits = changes.get("bits", spec.bits)
    known = name in known_optimizers()
    if not known or (bits == 8 and name not in EIGHT_BIT) or bits == 16:
        what = f"'{spec.name}'" if bits == 32 else f"'{spec.name}' with {bits}-bit states"
        why = f": {REFUSED[name]}" if name in REFUSED else ""
        raise UnsupportedJobError(
            f"training.optimizer: {what} is not modelled{why}; "
            f"known: {', '.join(known_optimizers())}; in 8 bits: {', '.join(EIGHT_BIT)}",
            code=UnknownCode.OPTIMIZER,
            path="training.optimizer.name",
        )
    return spec.model_copy(update={"name": name, **changes})


def make_optimizer(
    spec: JobSpec,
    parameters: Parameters,
    notebook: Notebook,
    version: Version,
    *,
    embeddings: Container[int] = (),
    managed: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Stepper:
    """Return the optimizer of *spec* over *parameters*, of which *embeddings* are some, by id.

    Transformers' Trainer tells bitsandbytes to keep states of embeddings in 32 bits (5.24.0
    `trainer.py`, `create_optimizer`). Paged states are made in *managed*.
    """
    chosen = require_known(spec.training.optimizer)
    if "optimizer" not in spec.training.model_fields_set:
        notebook.assume(
            AssumptionCode.DEFAULT, "training.optimizer", chosen.name, "absent: a usual one"
        )
    is_paged = chosen.paged and chosen.name in EIGHT_BIT
    if chosen.paged:
        notebook.unknown(
            UnknownCode.OPTIMIZER,
            "training.optimizer.paged",
            "paged states are on the card as far as there is room beside everything else"
            if is_paged
            else "paged states may leave the card; traced as if they stayed",
        )
    if is_paged and chosen.bits == 32:
        every = {id(parameter) for parameter in parameters}
        return RuleOptimizer(parameters, EIGHT_BIT[chosen.name], wide=every, paged=managed)
    if chosen.bits == 8:
        wide = embeddings if spec.model.source is ModelSource.HUGGINGFACE else ()
        if any(id(parameter) in wide for parameter in parameters):
            notebook.assume(
                AssumptionCode.DEFAULT,
                "training.optimizer.bits",
                "32 for embeddings",
                "as transformers' Trainer has it",
            )
        paged = managed if is_paged else None
        return RuleOptimizer(parameters, EIGHT_BIT[chosen.name], wide=wide, paged=paged)
    if chosen.name == "galore":
        notebook.assume(
            AssumptionCode.DEFAULT,
            "training.optimizer.name",
            f"rank {GALORE_RANK}, every matrix",
            "the default of transformers' Trainer; which matrices a job projects is not said",
        )
    if chosen.name in RULES:
        return RuleOptimizer(parameters, RULES[chosen.name])
    if chosen.name == "lbfgs":
        note_history(notebook)
        return Lbfgs(parameters)
    if chosen.name == "muon":
        note_split(notebook, version)
    mode = _mode(chosen, notebook, version)
    if chosen.name == "asgd":
        decay = chosen.weight_decay or 0.0
        return Asgd(parameters, weight_decay=decay, mode=mode, version=version)
    stepper = TORCH[chosen.name](parameters, chosen, mode)
    if mode.get("foreach") and chosen.name in WITH_ROOT and version < IN_PLACE_SINCE:
        return _TwoCopies(stepper)
    return stepper


def _mode(spec: Optimizer, notebook: Notebook, version: Version) -> dict[str, Any]:
    """Return `fused` or `foreach` as a run on a card would take it."""
    if spec.fused and spec.name in FUSED:
        return {"fused": True}
    if spec.foreach is not None:
        return {"foreach": spec.foreach}
    foreach = version >= FOREACH_DEFAULT_SINCE
    notebook.assume(
        AssumptionCode.DEFAULT,
        "training.optimizer.foreach",
        str(foreach).lower(),
        f"absent: the default of torch {version[0]}.{version[1]} on a GPU",
    )
    return {"foreach": foreach}
