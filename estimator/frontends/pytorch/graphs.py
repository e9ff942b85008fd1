"""How a model's passes run: operator by operator, or recorded in CUDA graphs.

    Built, batch -> outputs, with the pool their memory comes from

`torch.compile` with graphs runs forward and backward in one private pool that nothing else uses.
The first run of each warms up in the pool. The second records: what is no parameter is copied into
the pool first, and the recording empties the allocator's cache. Later ones replay: they copy to
the same places and allocate nothing. A new forward frees everything the pool holds, whoever refers
to it. Loss, optimizer and batches stay outside. Gradients are made in the pool; those of outputs
that the loss does not use are zeros, made outside and copied like the others.

Source: torch 2.15.0 (d0f2af8b) torch/_inductor/cudagraph_trees.py (`CUDAGraphTreeManager`,
`CUDAWarmupNode.run`, `_allocate_and_copy_recording_inputs`, `dealloc_current_path_weakrefs`),
torch/cuda/graphs.py (`graph.__enter__`), torch/_inductor/__init__.py (`list_mode_options`),
torch/_functorch/_aot_autograd/runtime_wrappers.py (`CompiledFunction`). The rules of 2.1 to 2.14
are taken to be the same, but for `BOXED_SINCE`.
Not modelled: what fusion saves, a copied input that dies before its forward ends, models that the
compiler breaks into several graphs or refuses to record, tuning of `max-autotune`, what the
driver keeps of a recorded graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from enum import IntEnum
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Batch, Built, run_forward
from estimator.frontends.pytorch.record import Recorder
from estimator.frontends.pytorch.versions import Version
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobPhase, JobSpec, Strategy
from estimator.trace import Role

SINCE: Version = (2, 1)
"""First version whose graphs are taken to share a pool: older ones are traced without."""
BOXED_SINCE: Version = (2, 15)
"""Version whose compiled backward is known to drop the outputs' gradients as it reads them.

Source: `boxed_grads_call` of `CompiledFunction`, pytorch/pytorch#177837 of March 2026. Which
release had it first is not known: older ones are taken to hold them until backward is done.
"""
PATH = "training.compile"
CACHED = ("keys", "values")
"""Tensors of a layer of a transformers KV cache."""
CACHES = ("self_attention_cache", "cross_attention_cache")
"""Its parts in models with an encoder."""


class Eager:
    """Runs a model operator by operator, on the stream of everything else."""

    num_runs: int = 2
    """Runs after which nothing new happens: the second finds the first one's outputs alive."""

    def __init__(self, built: Built) -> None:
        self.built = built

    def forward(self, batch: Batch) -> Any:
        """Return the model's outputs for *batch*."""
        return run_forward(self.built, batch)

    @contextmanager
    def backward(self) -> Iterator[None]:
        """Run a backward pass inside the block."""
        yield


class Stage(IntEnum):
    """What a run of a compiled model does, by how many there were before."""

    WARM_UP = 0
    RECORD = 1
    REPLAY = 2


class Graphs(Eager):
    """Runs a model as recorded graphs do, in a pool of its own."""

    num_runs = len(Stage)

    def __init__(self, built: Built, recorder: Recorder, *, holds_gradients: bool) -> None:
        super().__init__(built)
        self.recorder = recorder
        self.holds_gradients = holds_gradients
        self.pool: int | None = None
        self.stage = Stage.WARM_UP
        self._runs: Counter[bool] = Counter()
        """Runs of the forward that trains, and of the one that does not."""
        self._is_left = False
        """The outputs' gradients lead back into the pool."""
        self._gradients: tuple[torch.Tensor, ...] = ()
        """Of the outputs, where the call of backward holds them."""
        self._entered = ExitStack()

    def forward(self, batch: Batch) -> Any:
        """Return the model's outputs for *batch*: they live until the next forward."""
        builder, is_training = self.recorder.builder, self.built.model.training
        if self.pool is None:
            self.pool = builder.private_pool()
            builder.empty_cache()
        _forget(self.recorder, self.pool)
        self.stage = Stage(min(self._runs[is_training], Stage.REPLAY))
        self._runs[is_training] += 1
        with self._inside():
            if self.stage is not Stage.WARM_UP:
                batch = self._copied(batch)
            if self.stage is Stage.RECORD:
                builder.empty_cache()
            outputs = run_forward(self.built, batch)
        return self._left(outputs)

    @contextmanager
    def backward(self) -> Iterator[None]:
        """Run a backward pass: in the pool from where the loss hands over to the model."""
        with ExitStack() as self._entered:
            if not self._is_left:
                self.enter([])
            yield
        self._gradients = ()

    def enter(self, gradients: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Go on inside; take the outputs' *gradients* and return what the graph reads."""
        if self.holds_gradients:
            self._gradients = tuple(gradients)
        self._entered.enter_context(self._inside())
        is_warm_up = self.stage is Stage.WARM_UP
        read = tuple(each if is_warm_up else _copy(each) for each in gradients)
        gradients.clear()
        if self.stage is Stage.RECORD:
            self.recorder.builder.empty_cache()
        return read

    def _inside(self) -> AbstractContextManager[None]:
        """Return a block in which memory comes from the pool, or is there already."""
        assert self.pool is not None, "a forward comes first"
        if self.stage is Stage.REPLAY:
            return self.recorder.aside()
        return self.recorder.on_stream(self.pool)

    def _copied(self, batch: Batch) -> Batch:
        """Return what the model takes of *batch* as copies."""
        outside = () if self.built.library == "transformers" else self.built.targets
        with self.recorder.making(Role.INPUT):
            return {
                name: value if name in outside else tree_map(_copy, value)
                for name, value in batch.items()
            }

    def _left(self, outputs: Any) -> Any:
        """Return *outputs* such that backward enters the pool once all their gradients exist."""
        leaves, structure = tree_flatten(outputs)
        layers = [layer for leaf in leaves for layer in _layers(leaf)]
        cached = [(layer, name) for layer in layers for name in CACHED if hasattr(layer, name)]
        tensors = [*leaves, *(getattr(layer, name) for layer, name in cached)]
        places = [
            place
            for place, tensor in enumerate(tensors)
            if isinstance(tensor, torch.Tensor) and tensor.requires_grad
        ]
        self._is_left = bool(places)
        if not places:
            return outputs
        left = _Boundary.apply(self, *(tensors[place] for place in places))
        for place, tensor in zip(places, left, strict=True):
            tensors[place] = tensor
        for (layer, name), tensor in zip(cached, tensors[len(leaves) :], strict=True):
            setattr(layer, name, tensor)
        return tree_unflatten(tensors[: len(leaves)], structure)


class _Boundary(torch.autograd.Function):
    """Between a compiled model and the loss: one node, as autograd sees a compiled model."""

    boxed_grads_call = True

    @staticmethod
    def forward(context: Any, graphs: Graphs, *outputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        context.graphs = graphs
        return tuple(output.detach() for output in outputs)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> tuple[torch.Tensor | None, ...]:
        given = gradients[0]  # one list, which may be emptied; a torch before it has a tuple
        return (None, *context.graphs.enter(given if isinstance(given, list) else [*gradients]))


def execution_of(
    spec: JobSpec,
    built: Built,
    recorder: Recorder,
    notebook: Notebook,
    *,
    version: Version,
    set_to_none: bool = True,
) -> Eager:
    """Return how the model of *spec* runs, and note what that leaves open.

    *set_to_none*: whether the loop drops its gradients.
    """
    if not spec.training.compile.records_graphs:
        return Eager(built)
    obstacles = _obstacles(spec, built, version, set_to_none=set_to_none)
    if obstacles:
        notebook.unknown(
            UnknownCode.FEATURE,
            PATH,
            "traced as eager, without the pool of CUDA graphs, which is not modelled with "
            + ", ".join(obstacles),
        )
        return Eager(built)
    notebook.assume(
        AssumptionCode.COMPILE,
        PATH,
        "CUDA graphs",
        "the model is recorded whole, in a pool of its own; PyTorch may refuse to, and says so",
    )
    notebook.unknown(
        UnknownCode.FEATURE,
        PATH,
        "operators are traced as eager ones, which need more than fused ones; "
        "what the driver keeps of a recorded graph is not counted",
    )
    return Graphs(built, recorder, holds_gradients=version < BOXED_SINCE)


def _obstacles(
    spec: JobSpec, built: Built, version: Version, *, set_to_none: bool
) -> tuple[str, ...]:
    """Return what of the job the pool is not modelled with.

    Gradients that outlive a step lie in memory that the next forward overwrites: PyTorch stops
    such a job unless they were made outside (`format_dealloc_msg`).
    """
    training, trains = spec.training, spec.phase is JobPhase.TRAIN
    has_views = spec.parallelism.gradient_as_bucket_view
    found = (
        (version < SINCE, f"torch before {SINCE[0]}.{SINCE[1]}"),
        (built.is_at_most, "sizes that depend on values"),
        (not trains and spec.input.max_new_tokens > 0, "generation"),
        (trains and training.gradient_accumulation_steps > 1, "gradient accumulation"),
        (trains and not set_to_none, "gradients that are set to zero"),
        (trains and training.optimizer.in_backward, "an optimizer in backward"),
        (
            trains and spec.parallelism.strategy is Strategy.DDP and has_views,
            "gradients that are views of buckets",
        ),
    )
    return tuple(text for is_there, text in found if is_there)


def _layers(output: Any) -> Iterator[Any]:
    """Yield the layers of a transformers KV cache, which a model hands out with its tensors."""
    caches = (output, *(getattr(output, name, None) for name in CACHES))
    for cache in caches:
        layers = getattr(cache, "layers", None)
        if isinstance(layers, list):
            yield from layers


def _forget(recorder: Recorder, pool: int) -> None:
    """Free what is alive in *pool*: a new forward overwrites it, whoever still refers to it."""
    builder = recorder.builder
    for life in tuple(recorder.live.values()):
        if builder.streams[life.tensor] == pool:
            del recorder.live[life.key]
            builder.free(life.tensor)


def _copy(value: Any) -> Any:
    """Return a copy of a tensor on the card, anything else as it is."""
    if not isinstance(value, torch.Tensor) or not value.is_meta:
        return value
    with torch.no_grad():
        copy = value.clone()
    return copy.requires_grad_(value.requires_grad)
