"""Objectives beyond the model's own loss: preferences, rewards, a teacher.

    JobSpec -> JobSpec; Built -> Built

* `dpo`: a batch is pairs, chosen and rejected one after the other: twice as many texts. After the
  policy's forward pass the reference has one without gradients: the model itself with its adapter
  off, else the first companion, else a frozen copy of the model.
* `orpo`: pairs, no reference; the likelihood of the chosen half beside the odds ratio.
* `kto`: single texts. Before each forward pass one without gradients over mismatched texts, whose
  logits live until the policy's own are scored; the same for the reference after it.
* `reward`: pairs through a sequence classifier with one label.
* `distill`: the first companion is the teacher. Both score the same batch, and the generalised
  Jensen-Shannon divergence is over whole distributions.

Log-probabilities are one log-softmax a text in 16 bits, a gather and a log-sum-exp in fp32. Outputs
do not outlive the loss, dropout and the KV cache are off.
Source: huggingface/trl@9d58faa7 `trainer/dpo_trainer.py` and TRL 1.x `_compute_loss`; @00cdca7b
`orpo_trainer.py` (`concatenated_forward`), @b12c2cf0 `kto_trainer.py` (`forward`,
`compute_reference_log_probs`), @00b6d2b4 `reward_trainer.py` (`compute_loss`), 0.11
`gkd_trainer.py` (`generalized_jsd_loss`), `trainer/utils.py` (`selective_log_softmax`).
Not modelled: likelihoods of the reference computed ahead, texts generated while it trains (GKD's
`lmbda`), losses over hidden states (Liger), metrics over whole logits, evaluations of these losses.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from peft import PeftModel
from torch import nn

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.companions import companion_of
from estimator.frontends.pytorch.build.job import Built
from estimator.frontends.pytorch.dtypes import DTYPES
from estimator.frontends.pytorch.objectives.losses import MAKERS, Other, logits_of
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobPhase, JobSpec, ModelSource, Task
from estimator.spec.vocabulary import LossKind, Objective

PLAIN = (Objective.SUPERVISED, Objective.SFT)
PAIRED = (Objective.DPO, Objective.ORPO, Objective.REWARD)
COMPARED = (Objective.DPO, Objective.KTO)
"""Those that have a reference."""
MODELLED = (*PLAIN, *PAIRED, Objective.KTO, Objective.DISTILL)
Builder = Callable[[JobSpec, Notebook], Built]


def is_plain(spec: JobSpec) -> bool:
    """Return whether the model's own loss is trained on."""
    return spec.objective in PLAIN or spec.phase is not JobPhase.TRAIN


def as_trained(spec: JobSpec) -> JobSpec:
    """Return *spec* with what the trainer of its objective sets by itself.

    Raises:
        UnsupportedJobError: for models and losses that objective is not modelled with.
    """
    if is_plain(spec):
        return spec
    _refuse(spec)
    changes: dict[str, Any] = {"use_cache": False}
    if "keep_outputs" not in spec.training.model_fields_set:
        changes["keep_outputs"] = False
    spec = spec.model_copy(update={"training": spec.training.model_copy(update=changes)})
    if spec.objective is not Objective.REWARD:
        return spec
    model = {"task": Task.SEQUENCE_CLASSIFICATION, "num_labels": 1}
    return spec.model_copy(update={"model": spec.model.model_copy(update=model)})


def without_first(spec: JobSpec) -> JobSpec:
    """Return *spec* without the companion that is the reference or the teacher."""
    takes = spec.objective in COMPARED or spec.objective is Objective.DISTILL
    if is_plain(spec) or not takes or not spec.model.companions:
        return spec
    rest = {"companions": spec.model.companions[1:]}
    return spec.model_copy(update={"model": spec.model.model_copy(update=rest)})


def with_objective(spec: JobSpec, built: Built, notebook: Notebook, build: Builder) -> Built:
    """Return *built*, adapted as it will be, with the batches and the loss of its objective.

    Raises:
        UnsupportedJobError: for a teacher or a reference that cannot be built, or is not named.
    """
    if is_plain(spec):
        return built
    for module in built.model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    other = _other(spec, built, notebook, build)
    dtype = spec.training.output_dtype
    if other is not None and dtype is not None:
        # accelerate wraps this model's forward pass too.
        score, wide = other.score, DTYPES[dtype]
        other = replace(other, score=lambda batch: score(batch).to(wide))
    made = MAKERS[spec.objective](built, other)
    companions = (*built.companions, *(other.companions if other else ()))
    return replace(made, companions=companions)


def _refuse(spec: JobSpec) -> None:
    known = (Task.CAUSAL_LM, None)
    if spec.objective is Objective.REWARD:
        known = (*known, Task.SEQUENCE_CLASSIFICATION)  # type: ignore[assignment]
    if spec.model.source is not ModelSource.HUGGINGFACE or spec.model.task not in known:
        raise _unsupported(
            f"'{spec.objective}' is modelled for causal language models of transformers"
        )
    if spec.training.loss is not LossKind.DEFAULT and spec.objective is not Objective.REWARD:
        raise _unsupported(
            f"a {spec.training.loss} loss is not modelled for '{spec.objective}'",
            path="training.loss",
        )
    if spec.training.evaluation is not None:
        raise _unsupported(
            f"an evaluation of '{spec.objective}' is not modelled",
            path="training.evaluation",
        )


def _other(spec: JobSpec, built: Built, notebook: Notebook, build: Builder) -> Other | None:
    """Return the reference or the teacher of *spec*, or None if its objective has none."""
    if spec.objective is Objective.DISTILL:
        if not spec.model.companions:
            raise _unsupported(
                "the teacher is not named",
                path="model.companions",
                hint="name it: model: {companions: [{source: huggingface, name: …}]}",
            )
    elif spec.objective not in COMPARED:
        return None
    elif not spec.model.companions and isinstance(built.model, PeftModel):
        return Other(score=lambda batch: logits_of(built, built.model, batch, _off(built.model)))
    if spec.model.companions:
        first = companion_of(spec, spec.model.companions[0], "model.companions[0]", notebook, build)
    else:
        notebook.assume(
            AssumptionCode.DEFAULT,
            "model.companions",
            "a frozen copy of the model",
            "absent: TRL loads the model again as the reference, unless it has an adapter",
        )
        alone = spec.model_copy(update={"adapter": None, "quantization": None})
        first = build(alone, Notebook())
        first.model.eval().requires_grad_(False)
    return Other(
        score=lambda batch: logits_of(first, first.model, batch), companions=(first.model,)
    )


def _off(model: Any) -> AbstractContextManager[None]:
    off: AbstractContextManager[None] = model.disable_adapter()
    return off


def _unsupported(
    reason: str, *, path: str = "objective", hint: str | None = None
) -> UnsupportedJobError:
    return UnsupportedJobError(
        f"{path}: {reason}", code=UnknownCode.OBJECTIVE, path=path, hint=hint
    )
