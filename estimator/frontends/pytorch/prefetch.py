"""Batches on their way to the card, as a loader that copies ahead makes them.

    maker of batches -> the next batch

Such a loader copies on a stream of its own, so its batches come from segments that nothing else
uses. It makes the next batch while the loop still holds the last one. Images arrive as bytes and
are widened on the card: the byte copy lives until the wide one is there.

Source: `PrefetchLoader.__iter__` in huggingface/pytorch-image-models timm/data/loader.py (1.0);
apex and NVIDIA's examples do the same. Without batches ahead the loop copies on its own stream.
Not modelled: `record_stream` (those loaders wait for the stream instead), a loader of uint8 images
that the model itself widens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import torch
from torch.utils._python_dispatch import _disable_current_modes

from estimator.frontends.pytorch.build.job import Batch
from estimator.frontends.pytorch.record import Recorder
from estimator.trace import Role

STREAM = 1
IMAGE_DIMENSIONS = 4


class Prefetcher:
    """Makes batches, *num_ahead* of them before they are wanted."""

    def __init__(
        self, recorder: Recorder, make_batch: Callable[[], Batch], *, num_ahead: int
    ) -> None:
        self._recorder = recorder
        self._make_batch = make_batch
        self._stream = STREAM if num_ahead else 0
        self._ahead = deque(self._made() for _ in range(num_ahead))

    def next(self) -> Batch:
        """Return the next batch, after the one behind all that wait has been made."""
        self._ahead.append(self._made())
        return self._ahead.popleft()

    def _made(self) -> Batch:
        recorder = self._recorder
        with recorder.making(Role.INPUT), recorder.on_stream(self._stream):
            if not self._stream:
                return self._make_batch()
            staged = self._staged()
            batch = self._make_batch()
            del staged
            return batch

    def _staged(self) -> list[torch.Tensor]:
        """Return the bytes images are made from."""
        with _disable_current_modes():  # the frontend's own question, not an event of the job
            shapes = [
                tensor.shape
                for tensor in self._make_batch().values()
                if isinstance(tensor, torch.Tensor)
                and tensor.is_floating_point()
                and tensor.dim() == IMAGE_DIMENSIONS
            ]
        return [torch.empty(shape, dtype=torch.uint8, device="meta") for shape in shapes]
