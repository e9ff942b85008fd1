"""The phases of a job: variables arrive, two steps run, then an evaluation if there is one.

Built, JobSpec -> events of a Trace

Two steps, because the first creates what later ones find: slots of the optimizer are there from
the start in Keras 3, constants and the search for convolution plans belong to the first step.
Each step is fed a batch the host copied to the card; its results live until the next has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

from estimator.frontends.notebook import Notebook
from estimator.frontends.tensorflow.buffers import Memory, Value, Variable
from estimator.frontends.tensorflow.build import Built
from estimator.frontends.tensorflow.convolutions import Calls
from estimator.frontends.tensorflow.executor import Executor
from estimator.frontends.tensorflow.folding import folded, handle_data
from estimator.frontends.tensorflow.graph import Graph, TensorType
from estimator.frontends.tensorflow.operators import MOST_HOST_BYTES
from estimator.frontends.tensorflow.places import Scopes
from estimator.frontends.tensorflow.step import predict_step, test_step, train_step
from estimator.frontends.tensorflow.weightless import Seen
from estimator.notes import UnknownCode
from estimator.spec import JobPhase, JobSpec
from estimator.trace import Phase, Role, TraceBuilder

NUM_STEPS = 2
NUM_RANDOM = 3
"""Tensors alive when random values of a variable are made."""
RESOURCE = "resource"


@dataclass(slots=True, kw_only=True)
class Job:
    """One job being traced."""

    spec: JobSpec
    built: Built
    builder: TraceBuilder
    notebook: Notebook
    calls: Calls
    seen: Seen
    """How variables begin."""
    num_nodes: int = 0
    memory: Memory = field(init=False)
    variables: dict[int, Variable] = field(default_factory=dict)
    """By the identity of the handle's tensor."""
    results: list[Value] = field(default_factory=list)
    """What the last step gave its caller."""
    step: int = 0

    def __post_init__(self) -> None:
        self.memory = Memory(self.builder)

    def run(self) -> None:
        """Trace and run the job's steps."""
        model = self.built.model
        if self.spec.phase is not JobPhase.TRAIN:
            function = predict_step(self.built).concrete()
            self._load(model.variables, Role.PARAMETER)
            self._steps(function, [self.built.inputs], Scopes(model=model.name), NUM_STEPS)
            return
        step = train_step(self.built, self.spec)
        function = step.concrete()
        self._load(model.variables, Role.PARAMETER)
        self._load(model.optimizer.variables, Role.OPTIMIZER)
        scopes = Scopes(model=model.name, optimizer=model.optimizer.name)
        self._steps(function, step.specs, scopes, NUM_STEPS)
        evaluation = self.spec.training.evaluation
        if evaluation is not None:
            step = test_step(self.built, evaluation.batch_size)
            scopes = Scopes(model=model.name, whole=Phase.EVALUATION)
            self._steps(step.concrete(), step.specs, scopes, 1)

    def _load(self, variables: Sequence[Any], role: Role) -> None:
        """Allocate *variables*, in the order they are made."""
        for variable in variables:
            is_random = self.seen.is_random(variable)
            self._variable(variable.value.handle, role, variable.path, is_random=is_random)

    def _variable(self, handle: Any, role: Role, path: str, *, is_random: bool = False) -> Variable:
        found = self.variables.get(id(handle))
        if found is None:
            found = self.variables[id(handle)] = Variable(role)
            data = handle_data(handle)
            kind = _type_of(data)
            if kind.dtype == "int32" and (kind.nbytes or 0) <= MOST_HOST_BYTES:
                return found
            self.builder.at(step=0, phase=Phase.LOAD, operator="VarHandleOp", module=path)
            begun = self._begun(kind.nbytes or 0, is_random=is_random)
            self.memory.give(found, self.memory.new(kind.nbytes or 0, role))
            self.builder.free(begun)
        return found

    def _begun(self, nbytes: int, *, is_random: bool) -> int:
        """Record the values a variable begins with, which are then copied into it.

        Operations outside of a step run one by one, and each result is held until the next has
        its own: random numbers, those scaled, those moved.
        Source: tensorflow 2.21 python/ops/stateless_random_ops.py (`stateless_random_uniform`).
        """
        parts = [
            self.builder.alloc(nbytes, Role.TEMPORARY)
            for _ in range(NUM_RANDOM if is_random else 1)
        ]
        *before, values = parts
        for tensor in reversed(before):
            self.builder.free(tensor)
        return values

    def _steps(self, function: Any, fed: Sequence[Any], scopes: Scopes, count: int) -> None:
        """Run *function* *count* times with batches of the specs *fed*."""
        graph = folded(function.graph)
        self.num_nodes += len(graph.nodes)
        handles = {
            inner.op.name: self._variable(outer, Role.PARAMETER, inner.op.name)
            for outer, inner in function.graph.captures
            if outer.dtype.name == RESOURCE
        }
        captured = [
            self._kept(outer)
            for outer, _ in function.graph.captures
            if outer.dtype.name != RESOURCE
        ]
        executor = Executor(
            memory=self.memory,
            scopes=scopes,
            variables=handles,
            calls=self.calls,
            noted=self._note,
        )
        specs = keras.tree.flatten(fed)
        for turn in range(count):
            self.step += 1
            executor.step = self.step
            self.builder.at(step=self.step, phase=scopes.whole, operator="input", module="")
            if turn == 0:
                executor.load(graph)
            for value in captured:
                self.memory.hold(value)
            self._step(executor, graph, [*map(self._copied, specs), *captured])

    def _step(self, executor: Executor, graph: Graph, arguments: list[Value]) -> None:
        results, _ = executor.run(graph, arguments)
        for value in self.results:
            self.memory.drop(value)
        self.results = results

    def _copied(self, spec: Any) -> Value:
        """Return one tensor of a batch, as it arrives from the host."""
        return self._arrived(spec, Role.INPUT)

    def _kept(self, tensor: Any) -> Value:
        """Return a tensor the step refers to, made before it: it lives as long as the job."""
        self.builder.at(step=0, phase=Phase.LOAD, operator="Const", module="")
        return self._arrived(tensor, Role.PARAMETER)

    def _arrived(self, tensor: Any, role: Role) -> Value:
        kind = TensorType(tuple(tensor.shape), tensor.dtype.name)
        if kind.nbytes == 0 or (kind.dtype == "int32" and (kind.nbytes or 0) <= MOST_HOST_BYTES):
            return None
        buffer = self.memory.new(kind.nbytes or 0, role)
        self.memory.hold(buffer)
        return buffer

    def _note(self, operator: str, reason: str) -> None:
        self.notebook.unknown(UnknownCode.OPERATOR, operator, reason)


def _type_of(data: Any) -> TensorType:
    """Return the type of the variable behind a handle."""
    shape = tuple(dimension.size for dimension in data.shape.dim)
    return TensorType(shape, tf.as_dtype(data.dtype).name)
