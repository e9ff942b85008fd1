"""Activations that wait on the host for the backward pass.

    model -> a context for its forward pass

What autograd saves leaves the card and comes back when it is needed, parameters aside. The last few
stay until their copies are done. What the output head and the loss save stays on the card.
Source: pytorch/torchtune@v0.5.0 `torchtune/training/_activation_offloading.py`
(`OffloadActivations`: 1,024 bytes, five tensors in flight, no offload from the output head on).
Not modelled: when copies are done; all five are taken to be in flight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

LEAST = 1024
"""Smaller tensors stay."""
IN_FLIGHT = 5


@dataclass(frozen=True, slots=True)
class OnHost:
    """A saved tensor that has left the card."""

    shape: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype


class Offload:
    """Moves what a forward pass saves to the host."""

    def __init__(self, model: nn.Module) -> None:
        self._is_on = False
        self._in_flight: deque[torch.Tensor] = deque(maxlen=IN_FLIGHT)
        find = getattr(model, "get_output_embeddings", None)
        head = find() if callable(find) else None
        if isinstance(head, nn.Module):
            head.register_forward_pre_hook(self._stop)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Offload what is saved inside, until the output head runs."""
        self._is_on = True
        try:
            with saved_tensors_hooks(self._pack, self._unpack):
                yield
        finally:
            self._is_on = False
            self._in_flight.clear()

    def _stop(self, *_: Any) -> None:
        self._is_on = False
        self._in_flight.clear()

    def _pack(self, tensor: torch.Tensor) -> Any:
        is_small = tensor.nbytes < LEAST or not tensor.is_meta
        if not self._is_on or is_small or isinstance(tensor, nn.Parameter):
            return tensor
        self._in_flight.append(tensor)
        return OnHost(tensor.shape, tensor.stride(), tensor.dtype)

    @staticmethod
    def _unpack(saved: Any) -> torch.Tensor:
        if isinstance(saved, OnHost):
            return torch.empty_strided(saved.shape, saved.stride, dtype=saved.dtype, device="meta")
        tensor: torch.Tensor = saved
        return tensor
