"""The cheapest job a spec may turn out to be.

    JobSpec -> a JobSpec that surely needs no more, or None if the spec itself is that

`least` may reject a job, so it must not rest on what the spec leaves open or on a feature that
needs less than what was traced. Each rule names the part of the spec it is about.
Never used for `peak`, `enough` or `most`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from estimator.spec import Framework, JobPhase, JobSpec, Optimizer, Strategy, Task, parse_spec
from estimator.spec.vocabulary import KernelSet, LossKind, ModelSource, Objective, Padding

SHORTEST = 1
"""Tokens of the shortest sample if nothing is known of the data."""
ZERO = (Strategy.ZERO1, Strategy.ZERO2, Strategy.ZERO3)
COMPARING = (Objective.DPO, Objective.ORPO, Objective.KTO, Objective.DISTILL)
"""Objectives whose trainers differ in how texts are scored."""
TRACED = (Framework.PYTORCH, Framework.MXNET)
"""Frameworks whose cheapest job is found in a moment."""
_SGD: Mapping[str, Any] = {"name": "sgd"}


def frugal_spec(spec: JobSpec, *, taken: Collection[str] = ()) -> JobSpec | None:
    """Return the cheapest job *spec* may be; *taken* are paths whose values a trace had to take.

    * A length that was taken: texts may be one token long.
    * An optimizer that is not stated: plain SGD keeps no state. Of steps that XLA compiles this is
      not followed, a compile takes seconds: `adamw` counts as stated there.
    * `padding: longest`: every sample may be one token long (docs/contracts.md, section 1).
    * A chunked loss may be one of many, and Liger's kernels bring its fused loss: the cheapest is
      fused. On models without such a head how much less they keep is not modelled; a job of one
      token is surely below it.
    * Paged optimizer states may leave the card: plain SGD keeps none.
    * MXNet's graphs need less bound whole than operator by operator, if nothing says which.
    * CUDA graphs hold more than eager steps do, and a model may turn out not to be recorded.
    * Who gets which parameters under Muon, and how long the history of L-BFGS is, no spec says:
      Muon keeps a momentum of everything at least, as SGD does, L-BFGS perhaps nothing yet.
    * FSDP1 keeps whole gradients while it accumulates only under `no_sync`, which no spec says:
      reduced each time they are those of one micro-batch.
    * ZeRO's reduce bucket is 5e8 elements unless it is set; the Trainer's `auto` makes it the
      square of the hidden width. Where the spec does not say, there may be next to none.
    * Preferences and distillation: no spec says whether the reference was asked ahead, whether a
      pair is one batch or two, or which loss scores the logits: never less than fused training on
      the batch alone.
    """
    changes: dict[str, Any] = {}
    training = spec.training
    is_lean = training.loss is not LossKind.DEFAULT or training.kernels is KernelSet.LIGER
    is_modelled = spec.model.task is Task.CAUSAL_LM
    if spec.input.padding is Padding.LONGEST or (is_lean and not is_modelled):
        changes["input"] = _shortest(spec)
    elif lengths := _taken_lengths(spec, taken):
        changes["input"] = lengths
    steps = _steps(spec)
    if is_lean and is_modelled and training.loss is not LossKind.FUSED:
        steps["loss"] = LossKind.FUSED.value
    if _compares(spec):
        changes["objective"] = Objective.SUPERVISED.value
        steps |= {"loss": LossKind.FUSED.value, "useCache": False, "keepOutputs": False}
    if steps:
        changes["training"] = steps
    parallel = spec.parallelism
    if parallel.strategy in ZERO and "zero" not in parallel.model_fields_set:
        changes["parallelism"] = {"zero": {"reduceBucketElements": 1}}
    if not changes:
        return None
    return parse_spec(_merged(spec.document(), changes))


def _steps(spec: JobSpec) -> dict[str, Any]:
    """Return what of `training` the cheapest job does otherwise."""
    changes: dict[str, Any] = {}
    if spec.training.compile.records_graphs or _may_be_bound(spec):
        changes["compile"] = {"enabled": True}
    is_fsdp = spec.parallelism.strategy is Strategy.FSDP
    if is_fsdp and spec.training.gradient_accumulation_steps > 1:
        changes["gradientAccumulationSteps"] = 1
    if spec.phase is JobPhase.TRAIN:
        optimizer = spec.training.optimizer
        if _is_open(spec) or _may_keep_nothing(optimizer):
            changes["optimizer"] = _SGD
        elif optimizer.name.lower() == "muon":
            changes["optimizer"] = {**_SGD, "momentum": 0.9, "inBackward": optimizer.in_backward}
    return changes


def _is_open(spec: JobSpec) -> bool:
    """Return whether nothing says which optimizer it is; a Trace file has its steps."""
    is_stated = "optimizer" in spec.training.model_fields_set
    return not is_stated and spec.framework in TRACED and _is_traced_here(spec)


def _is_traced_here(spec: JobSpec) -> bool:
    return spec.model.source is not ModelSource.TRACE


def _may_keep_nothing(optimizer: Optimizer) -> bool:
    return optimizer.paged or optimizer.name.lower() == "lbfgs"


def _taken_lengths(spec: JobSpec, taken: Collection[str]) -> dict[str, Any]:
    """Return what of `input` is as short as it can be, because nothing says how long it is."""
    lengths: dict[str, Any] = {}
    if not _is_traced_here(spec):
        return lengths
    if "input.sequenceLength" in taken and spec.input.sequence_length is None:
        lengths["sequenceLength"] = SHORTEST + spec.input.max_new_tokens
    if "input.targetLength" in taken and spec.input.target_length is None:
        lengths["targetLength"] = SHORTEST
    return lengths


def _compares(spec: JobSpec) -> bool:
    """Return whether texts are scored by more than the model's own loss."""
    is_torch = spec.framework is Framework.PYTORCH and spec.phase is JobPhase.TRAIN
    return is_torch and spec.objective in COMPARING


def _may_be_bound(spec: JobSpec) -> bool:
    """Return whether a job of MXNet does not say how it runs its graph: bound whole needs less."""
    return spec.framework is Framework.MXNET and "compile" not in spec.training.model_fields_set


def _shortest(spec: JobSpec) -> dict[str, Any]:
    lengths = {"sequenceLength": SHORTEST + spec.input.max_new_tokens, "padding": "fixed"}
    return lengths | ({"targetLength": SHORTEST} if spec.input.target_length else {})


def _merged(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return *document* with *changes* laid over it; an optimizer is replaced whole."""
    merged = dict(document)
    for key, change in changes.items():
        is_part = isinstance(change, Mapping)
        merged[key] = {**document.get(key, {}), **change} if is_part else change
    return merged
