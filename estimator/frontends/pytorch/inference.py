"""An inference job: its tensors at load, then a forward pass or a generation.

Built, JobSpec -> events
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from inspect import signature
from typing import Any

import torch

from estimator.errors import UnsupportedJobError
from estimator.frontends.pytorch.build.job import Built, Shapes, stand_in
from estimator.frontends.pytorch.graphs import execution_of
from estimator.frontends.pytorch.load import load_model
from estimator.frontends.pytorch.notebook import Notebook
from estimator.frontends.pytorch.record import Recorder
from estimator.frontends.pytorch.versions import Version
from estimator.notes import AssumptionCode, UnknownCode
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
        self.keeps_last = "logits_to_keep" in signature(self.model.forward).parameters

    def run(self) -> None:
        """Load the model, then run passes or generate."""
        load_model(self.recorder, self.model)
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
        """Read the prompt, then make the last tokens with the cache at its full length.

        Source: transformers 5.24.0 `generation/utils.py` and `cache_utils.py`: `DynamicCache`
        joins the new keys to the old ones layer by layer, so both exist for one layer.
        Not modelled: beams, static caches.
        """
        spec, model = self.spec, self.model
        if self.built.library != "transformers" or model.config.is_encoder_decoder:
            raise UnsupportedJobError(
                "input.maxNewTokens: generation is modelled for causal language models only",
                code=UnknownCode.FEATURE,
                path="input.maxNewTokens",
            )
        batch, new = spec.input.batch_size, spec.input.max_new_tokens
        whole = spec.input.sequence_length or new + 1
        prompt = max(1, whole - new)
        self.notebook.assume(
            AssumptionCode.LENGTH,
            "input.sequenceLength",
            prompt,
            "prompt: the length less new tokens",
        )
        self.recorder.enter(Phase.GENERATION, step=1)
        cache = self._forward(batch, prompt, None)
        self.recorder.promote(Role.ACTIVATION)
        self.recorder.enter(Phase.GENERATION, step=2)
        cache = self._grown(cache, max(0, new - 2))
        self.recorder.promote(Role.ACTIVATION)
        for _ in range(min(2, new)):
            cache = self._forward(batch, 1, cache)
            self.recorder.promote(Role.ACTIVATION)
        self.recorder.enter(Phase.GENERATION, step=2)

    def _forward(self, batch: int, length: int, cache: Any) -> Any:
        with self.recorder.making(Role.INPUT):
            ids = stand_in(batch, length, dtype=torch.int64)
        keywords = {"logits_to_keep": 1} if self.keeps_last else {}
        outputs = self.model(input_ids=ids, past_key_values=cache, use_cache=True, **keywords)
        return outputs.past_key_values

    def _grown(self, cache: Any, tokens: int) -> Any:
        """Return *cache* with *tokens* more in every layer, as if they had been generated."""
        if cache is None or not hasattr(cache, "layers"):
            self.notebook.unknown(
                UnknownCode.FEATURE, "input.maxNewTokens", "this model's cache is not traced"
            )
            return cache
        for layer in cache.layers:
            keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
            if isinstance(keys, torch.Tensor) and isinstance(values, torch.Tensor) and tokens:
                layer.keys = torch.cat([keys, _more(keys, tokens)], dim=-2)
                layer.values = torch.cat([values, _more(values, tokens)], dim=-2)
        return cache


def _more(tensor: torch.Tensor, tokens: int) -> torch.Tensor:
    """Return room for *tokens* more positions that costs nothing itself."""
    shape = (*tensor.shape[:-2], tokens, tensor.shape[-1])
    return tensor.new_empty(()).expand(shape)
