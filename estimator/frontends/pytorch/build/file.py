"""A model that comes in a file: the forward graph of an ONNX export.

    model.config {format: onnx, …} -> Built

A graph is a forward description: how the job trains it is taken, not told. Its figures are those of
a formula, and where it holds attention or norms in single steps, which a job may run fused, `least`
rests on the weights alone. Source: facts of exporters, docs/limits.md.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Batch, Built, Shapes, run_forward, stand_in
from estimator.frontends.pytorch.build.onnx.feeding import Feed
from estimator.frontends.pytorch.build.onnx.graph import Graph, is_graph, parse_graph
from estimator.frontends.pytorch.build.onnx.module import GraphModule
from estimator.frontends.pytorch.build.onnx.objective import targets_of
from estimator.frontends.pytorch.build.onnx.simplifying import simplified
from estimator.frontends.pytorch.dtypes import WEIGHTS
from estimator.notes import UnknownCode
from estimator.spec import JobPhase, JobSpec
from estimator.spec.vocabulary import MemoryFormat

TRACE_HINT = "`vramgate trace` estimates a module of your own"
UNTOLD = (
    "an ONNX graph is a forward description: dropout and batch norm that the export took out, "
    "results made in place, fused kernels, recomputation and layout are not in it"
)


def build_file(spec: JobSpec, notebook: Notebook) -> Built:
    """Return the graph of `model.config` as a model, with batches of its inputs and a loss.

    Raises:
        SpecError: if the graph is broken, or a size that it leaves open is not told.
        UnsupportedJobError: if the file is none that is read, or an operator is not modelled.
    """
    if not is_graph(spec.model.config):
        raise UnsupportedJobError(
            "model.source: a 'file' is modelled for PyTorch if model.config is an ONNX graph "
            "that was read of it",
            code=UnknownCode.MODEL,
            path="model.source",
            hint=TRACE_HINT,
        )
    graph = simplified(parse_graph(spec.model.config))
    dtype = WEIGHTS[spec.training.precision]
    module = GraphModule(graph, dtype)
    if spec.phase is JobPhase.TRAIN and not any(True for _ in module.parameters()):
        message = "no tensor of the graph looks trained: there is nothing to train"
        raise SpecError([Problem(path="model.config.tensors", message=message)])
    feed = Feed.of(spec, graph, module.settings)
    module.exported_batch = feed.exported_batch
    channels_last = spec.runtime.memory_format is MemoryFormat.CHANNELS_LAST
    if channels_last:
        module.to(memory_format=torch.channels_last)
    notebook.unknown(UnknownCode.MODEL, "model.config", UNTOLD)
    targets = targets_of(spec, _tried(spec, module, feed), feed.inputs(1), notebook)

    def make_batch(shapes: Shapes) -> Batch:
        inputs = feed.inputs(shapes.batch_size)
        if channels_last:
            inputs = [
                each.to(memory_format=torch.channels_last) if each.dim() == 4 else each
                for each in inputs
            ]
        made = [stand_in(shapes.batch_size, *shape, dtype=kind) for shape, kind in targets.made]
        return {"inputs": inputs, "targets": made}

    return Built(
        model=module,
        make_batch=make_batch,
        forward=_forward,
        loss=lambda outputs, batch: targets.loss(outputs, batch["targets"]),
        targets=("targets",),
        is_at_most=_may_be_fused(graph),
        is_formula=True,
    )


def _forward(module: nn.Module, batch: Batch) -> Any:
    return module(*batch["inputs"])


def _tried(spec: JobSpec, module: GraphModule, feed: Feed) -> tuple[torch.Tensor, ...]:
    """Return outputs of a first run, which nobody records: shapes, and what does not fit.

    Raises:
        UnsupportedJobError: if the graph does not take such a batch.
    """
    inputs = feed.inputs(spec.input.batch_size)
    tried = Built(
        model=module, make_batch=lambda _: {}, forward=_forward, loss=lambda outputs, _: outputs
    )
    with torch.no_grad():
        module.eval()
        outputs: tuple[torch.Tensor, ...] = run_forward(tried, {"inputs": inputs})
        module.train()
    return outputs


def _may_be_fused(graph: Graph) -> bool:
    """Return whether *graph* holds steps that models run as one kernel: attention, norms."""
    operators = {node.op for node in graph.nodes}
    has_attention = "Softmax" in operators and bool({"MatMul", "Einsum"} & operators)
    return has_attention or {"ReduceMean", "Sqrt"} <= operators or "Erf" in operators
