"""Text that a causal language model generates with its KV cache.

    batch, prompt, new tokens -> events

The prompt is read, then the last tokens are made with the cache at its full length.
Source: transformers 5.24.0 `generation/utils.py` and `cache_utils.py`: `DynamicCache` joins the new
keys to the old ones layer by layer, so both exist for one layer.
Not modelled: beams, static caches.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Built, stand_in
from estimator.frontends.pytorch.record import Recorder
from estimator.notes import AssumptionCode, UnknownCode
from estimator.trace import Phase, Role


class Generation:
    """Generates while the recorder watches."""

    def __init__(self, built: Built, recorder: Recorder, notebook: Notebook, *, path: str) -> None:
        self.model: Any = built.model
        self.built = built
        self.recorder = recorder
        self.notebook = notebook
        self.path = path
        """What of the spec asks for it."""
        forward = signature(self.model.forward).parameters
        self.keeps_last = built.keeps_last and "logits_to_keep" in forward

    def run(self, *, batch: int, whole: int | None, new: int, step: int) -> None:
        """Generate *new* tokens of *whole* for each of *batch* texts, in steps from *step* on.

        Raises:
            UnsupportedJobError: for models other than causal language models of transformers.
        """
        if self.built.library != "transformers" or self.model.config.is_encoder_decoder:
            raise UnsupportedJobError(
                f"{self.path}: generation is modelled for causal language models only",
                code=UnknownCode.FEATURE,
                path=self.path,
            )
        prompt = max(1, (whole or new + 1) - new)
        self.notebook.assume(
            AssumptionCode.LENGTH,
            "input.sequenceLength",
            prompt,
            "prompt: the length less new tokens",
        )
        recorder = self.recorder
        recorder.enter(Phase.GENERATION, step=step)
        cache = self._forward(batch, prompt, None)
        recorder.promote(Role.ACTIVATION)
        recorder.enter(Phase.GENERATION, step=step + 1)
        cache = self._grown(cache, max(0, new - 2))
        recorder.promote(Role.ACTIVATION)
        for _ in range(min(2, new)):
            cache = self._forward(batch, 1, cache)
            recorder.promote(Role.ACTIVATION)
        recorder.enter(Phase.GENERATION, step=step + 1)

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
                UnknownCode.FEATURE, self.path, "this model's cache is not traced"
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
