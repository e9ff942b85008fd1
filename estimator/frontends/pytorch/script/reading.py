"""The job a script turned out to be, as a JobSpec.

    what was watched -> input, precision, optimizer, phase

The Trace holds every byte; the spec says to people, and to what is beside the allocator, what job
it is. What could not be read is left out and said.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.script.mixed import Regions
from estimator.frontends.pytorch.script.watch import Watch
from estimator.notes import AssumptionCode
from estimator.spec import JobSpec, Precision, parse_spec

IMAGE_DIMENSIONS = 4
_MOST = 1 << 20
_WHOLE = (torch.int64, torch.int32)
_MIXED = {torch.float16: Precision.AMP_FP16, torch.bfloat16: Precision.AMP_BF16}
_STORED = {torch.float16: Precision.FP16, torch.bfloat16: Precision.BF16}


def job_of(spec: JobSpec, name: str, watch: Watch, regions: Regions, notebook: Notebook) -> JobSpec:
    """Return *spec* with what *watch* saw of the script *name*."""
    document = spec.document()
    document["model"] = {"source": "file", "name": name}
    document["phase"] = "train" if watch.num_backward else "infer"
    document["input"] = _input(watch, notebook)
    training = {**document.get("training", {}), "precision": _precision(watch, regions).value}
    if watch.num_backward:
        training |= _training(watch)
    document["training"] = training
    world = distributed.get_world_size() if distributed.is_initialized() else 1
    if world > 1:
        document["parallelism"] = {"strategy": "ddp", "dataParallel": world}
    runtime = document.setdefault("runtime", {})
    runtime["cudnnBenchmark"] = bool(torch.backends.cudnn.benchmark)
    runtime["cudnnDeterministic"] = bool(torch.backends.cudnn.deterministic)
    return parse_spec(document)


def _input(watch: Watch, notebook: Notebook) -> dict[str, Any]:
    """Return batch and size of what the model was called with first."""
    found: dict[str, Any] = {"batchSize": 1}
    tensors = [each for each in watch.inputs if each.shape]
    if not tensors or not 1 <= tensors[0].shape[0] <= _MOST:
        notebook.assume(
            AssumptionCode.DEFAULT,
            "input.batchSize",
            "1",
            "the script shows no tensor with a batch",
        )
        return found
    first = tensors[0]
    found["batchSize"] = first.shape[0]
    sizes = list(first.shape[1:])
    if len(first.shape) == IMAGE_DIMENSIONS and first.dtype.is_floating_point and all(sizes):
        found["imageSize"] = sizes
    elif len(sizes) == 1 and first.dtype in _WHOLE and sizes[0]:
        found["sequenceLength"] = sizes[0]
    elif sizes and len(sizes) <= IMAGE_DIMENSIONS and all(0 < size < _MOST for size in sizes):
        found["shape"] = sizes
    return found


def _precision(watch: Watch, regions: Regions) -> Precision:
    """Return the precision of the regions that were opened, else of the weights."""
    for dtype in regions.seen:
        if dtype in _MIXED:
            return _MIXED[dtype]
    dtype = watch.weight[1]
    if dtype in _STORED:
        return _STORED[dtype]
    return Precision.TF32 if torch.backends.cuda.matmul.allow_tf32 else Precision.FP32


def _training(watch: Watch) -> dict[str, Any]:
    """Return the optimizer, and how many backward passes a step has."""
    found: dict[str, Any] = {}
    name = (watch.optimizer or "").lower()
    if name.isidentifier():
        found["optimizer"] = {"name": name}
    passes = round(watch.num_backward / max(1, sum(watch.stepped.values())))
    if passes > 1:
        found["gradientAccumulationSteps"] = passes
    return found
