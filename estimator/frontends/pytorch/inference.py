"""An inference job: its tensors at load, then a forward pass or a generation.

Built, JobSpec -> events
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Built, Shapes
from estimator.frontends.pytorch.generation import Generation
from estimator.frontends.pytorch.graphs import execution_of
from estimator.frontends.pytorch.load import load_model
from estimator.frontends.pytorch.record import Recorder
from estimator.frontends.pytorch.versions import Version
from estimator.spec import JobSpec
from estimator.trace import Phase, Role


class Inference:
    """Runs an inference job while the recorder watches."""

    def __init__(
        self,
        spec: JobSpec,
        built: Built,
        recorder: Recorder,
        notebook: Notebook,
        *,
        version: Version,
        region: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.spec = spec
        self.built = built
        self.recorder = recorder
        self.notebook = notebook
        self.model: Any = built.model.eval()
        self.execution = execution_of(spec, built, recorder, notebook, version=version)
        self.region = region

    def run(self) -> None:
        """Load the model, then run passes or generate."""
        load_model(self.recorder, self.model, *self.built.companions)
        with torch.no_grad(), self.region():
            if self.spec.input.max_new_tokens:
                self._generate()
            else:
                self._passes()

    def _passes(self) -> None:
        shapes = Shapes(
            batch_size=self.spec.input.batch_size, sequence_length=self.spec.input.sequence_length
        )
        kept: dict[str, Any] = {}
        passes = self.execution.num_runs
        for step in range(1, passes + 1):
            self.recorder.enter(Phase.FORWARD, step=step)
            with self.recorder.making(Role.INPUT):
                batch = self.built.make_batch(shapes)
                for name in self.built.targets:
                    batch.pop(name, None)
            kept["batch"] = batch
            outputs = self.execution.forward(batch)
            if self.spec.training.keep_outputs:
                kept["outputs"] = outputs
            del outputs
        self.recorder.enter(Phase.FORWARD, step=passes)

    def _generate(self) -> None:
        generation = Generation(self.built, self.recorder, self.notebook, path="input.maxNewTokens")
        given = self.spec.input
        generation.run(
            batch=given.batch_size, whole=given.sequence_length, new=given.max_new_tokens, step=1
        )
