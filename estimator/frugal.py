"""The cheapest job a spec may turn out to be.

    JobSpec -> a JobSpec that surely needs no more, or None if the spec itself is that

`least` may reject a job, so it must not rest on what the spec leaves open or on a feature that
needs less than what was traced. Each rule names the part of the spec it is about.
Never used for `peak`, `enough` or `most`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.spec import JobPhase, JobSpec, parse_spec
from estimator.spec.vocabulary import KernelSet, LossKind, Padding

SHORTEST = 1
"""Tokens of the shortest sample if nothing is known of the data."""
_SGD: Mapping[str, Any] = {"name": "sgd"}


def frugal_spec(spec: JobSpec) -> JobSpec | None:
    """Return the cheapest job *spec* may be.

    * `padding: longest`: every sample may be one token long (docs/contracts.md, section 1).
    * A fused or chunked loss and Liger's kernels keep less than what is traced in their place.
      How much less is not modelled; a job of one token is surely below it.
    * Paged optimizer states may leave the card: plain SGD keeps none.
    * CUDA graphs hold more than eager steps do, and a model may turn out not to be recorded.
    * Who gets which parameters under Muon, and how long the history of L-BFGS is, no spec says:
      Muon keeps a momentum of everything at least, as SGD does, L-BFGS perhaps nothing yet.
    """
    changes: dict[str, Any] = {}
    training = spec.training
    if (
        spec.input.padding is Padding.LONGEST
        or training.loss is not LossKind.DEFAULT
        or training.kernels is KernelSet.LIGER
    ):
        changes["input"] = _shortest(spec)
    steps = _steps(spec)
    if steps:
        changes["training"] = steps
    if not changes:
        return None
    return parse_spec(_merged(spec.document(), changes))


def _steps(spec: JobSpec) -> dict[str, Any]:
    """Return what of `training` the cheapest job does otherwise."""
    changes: dict[str, Any] = {}
    if spec.training.compile.records_graphs:
        changes["compile"] = {"enabled": True}
    if spec.phase is JobPhase.TRAIN:
        optimizer = spec.training.optimizer
        if optimizer.paged or optimizer.name.lower() == "lbfgs":
            changes["optimizer"] = _SGD
        elif optimizer.name.lower() == "muon":
            changes["optimizer"] = {**_SGD, "momentum": 0.9, "inBackward": optimizer.in_backward}
    return changes


def _shortest(spec: JobSpec) -> dict[str, Any]:
    lengths = {"sequenceLength": SHORTEST + spec.input.max_new_tokens, "padding": "fixed"}
    return lengths | ({"targetLength": SHORTEST} if spec.input.target_length else {})


def _merged(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return *document* with *changes* laid over it; an optimizer is replaced whole."""
    merged = dict(document)
    for key, change in changes.items():
        merged[key] = {**document.get(key, {}), **change}
    return merged
