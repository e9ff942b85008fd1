"""How the arrays of a step lie on the cards of a job.

    parallelism -> Layout: a mesh of data x model axes, the sharding of every array

Data parallel: batches are cut along their first axis, the state is on every card.
Fully sharded (`fsdp`): the state is cut too, each array along its largest axis that divides.
Tensor parallel: weights of two axes and more are cut along their last axis, if it divides.
XLA inserts whatever communication that takes. A layout map of the job's own may cut otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from estimator.errors import UnsupportedJobError
from estimator.frontends.jax.step import Argument, Step
from estimator.notes import UnknownCode
from estimator.spec import JobSpec, Strategy

DATA, MODEL = "data", "model"
MAX_DEVICES = 1024
SHARDED = (Strategy.FSDP, Strategy.ZERO3)
REPLICATED = (Strategy.NONE, Strategy.DDP, Strategy.MIRRORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A mesh, and where each array lies on it."""

    data: int
    model: int
    is_sharded: bool

    @property
    def num_devices(self) -> int:
        """Return the number of cards."""
        return self.data * self.model

    @property
    def mesh(self) -> AbstractMesh:
        """Return the cards as an abstract mesh."""
        kinds = (AxisType.Auto, AxisType.Auto)
        return AbstractMesh((self.data, self.model), (DATA, MODEL), axis_types=kinds)

    def whole(self, spec: JobSpec) -> JobSpec:
        """Return *spec* with the batch of all cards, of which each gets its own."""
        batch = spec.input.model_copy(update={"batch_size": spec.input.batch_size * self.data})
        return spec.model_copy(update={"input": batch})

    def sharding(self, argument: Argument) -> NamedSharding:
        """Return how *argument* is cut."""
        if argument.is_batch:
            return NamedSharding(self.mesh, PartitionSpec(DATA))
        axes: list[str | None] = [None] * len(argument.shape)
        if self.model > 1 and len(axes) > 1 and argument.shape[-1] % self.model == 0:
            axes[-1] = MODEL
        if self.is_sharded:
            free = [index for index, axis in enumerate(axes) if axis is None]
            fitting = [index for index in free if argument.shape[index] % self.data == 0]
            largest = max(fitting, key=lambda index: argument.shape[index], default=None)
            if largest is not None:
                axes[largest] = DATA
        return NamedSharding(self.mesh, PartitionSpec(*axes))

    def results(self, step: Step, shardings: list[NamedSharding]) -> Any:
        """Return how the results are cut: a new state as the old one, the rest as XLA likes."""
        if not step.is_donated:
            return None
        leaves = iter(shardings)
        state = [[next(leaves) for _ in part] for part in step.state]
        return None, tuple(state)


def layout_of(spec: JobSpec) -> Layout:
    """Return the layout of *spec*.

    Raises:
        UnsupportedJobError: if the job is spread in a way that is not modelled.
    """
    parallel = spec.parallelism
    others = (parallel.pipeline_parallel, parallel.context_parallel, parallel.expert_parallel)
    if parallel.strategy not in (*SHARDED, *REPLICATED) or max(others) > 1:
        raise _unsupported(
            f"parallelism: '{parallel.strategy}' or pipeline, context and expert parallelism are"
            " not modelled for JAX"
        )
    if parallel.shard_group is not None and parallel.shard_group != parallel.data_parallel:
        raise _unsupported("parallelism.shardGroup: sharding within groups is not modelled for JAX")
    layout = Layout(
        data=parallel.data_parallel,
        model=parallel.tensor_parallel,
        is_sharded=parallel.strategy in SHARDED and parallel.data_parallel > 1,
    )
    if layout.num_devices > MAX_DEVICES:
        raise _unsupported(
            f"parallelism: {layout.num_devices} cards, at most {MAX_DEVICES} are compiled for"
        )
    return layout


def _unsupported(message: str) -> UnsupportedJobError:
    return UnsupportedJobError(message, code=UnknownCode.PARALLELISM, path="parallelism")
