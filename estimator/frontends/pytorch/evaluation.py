"""An evaluation after training steps: forward passes of its own shapes, texts it generates.

    JobSpec, Built -> events

Logits that are wanted whole stay on the card until the evaluation ends, each batch joined to those
before it: both exist meanwhile.
Source: transformers 5.24.0 `trainer.py` (`evaluation_loop`), `trainer_pt_utils.py`
(`EvalLoopContainer`, `nested_concat`).
Not modelled: how many batches there are (two are traced, and the growth is named), metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Batch, Built, Shapes
from estimator.frontends.pytorch.generation import Generation
from estimator.frontends.pytorch.graphs import Eager
from estimator.frontends.pytorch.record import Recorder
from estimator.notes import UnknownCode
from estimator.spec import JobSpec
from estimator.trace import Phase, Role
from estimator.units import gib_up

BATCHES = 2


def evaluate(
    spec: JobSpec,
    built: Built,
    recorder: Recorder,
    notebook: Notebook,
    *,
    execution: Eager,
    region: Callable[[], AbstractContextManager[None]],
    step: int,
) -> dict[str, Any]:
    """Run what *spec* evaluates with; return what the loop keeps."""
    asked = spec.training.evaluation
    assert asked is not None
    recorder.enter(Phase.EVALUATION, step=step)
    built.model.eval()
    length = asked.sequence_length or spec.input.sequence_length
    kept: dict[str, Any] = {}
    with torch.no_grad():
        if asked.max_new_tokens:
            with region():
                Generation(built, recorder, notebook, path="training.evaluation").run(
                    batch=asked.batch_size, whole=length, new=asked.max_new_tokens, step=step
                )
            return kept
        shapes = Shapes(batch_size=asked.batch_size, sequence_length=length)
        for _ in range(max(BATCHES, execution.num_runs)):
            with recorder.making(Role.INPUT):
                batch: Batch = built.make_batch(shapes)
            with region():
                outputs = execution.forward(batch)
            if asked.collect_logits:
                _collect(outputs, kept)
            if spec.training.keep_outputs:
                kept["outputs"] = outputs
            del outputs, batch
    if asked.collect_logits:
        _note(kept, notebook)
    return kept


def _collect(outputs: Any, kept: dict[str, Any]) -> None:
    """Join the logits of *outputs* to those before."""
    logits = getattr(outputs, "logits", outputs)
    if isinstance(logits, torch.Tensor):
        before = kept.get("logits")
        kept["logits"] = logits if before is None else torch.cat([before, logits])


def _note(kept: dict[str, Any], notebook: Notebook) -> None:
    logits = kept.get("logits")
    if logits is None:
        notebook.unknown(
            UnknownCode.FEATURE, "training.evaluation", "this model has no logits to collect"
        )
        return
    notebook.unknown(
        UnknownCode.FEATURE,
        "training.evaluation.collectLogits",
        f"logits of {BATCHES} batches are kept; each further one adds "
        f"{gib_up(logits.nbytes // BATCHES)}, and as much again while they are joined",
    )
