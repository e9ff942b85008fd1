"""A model arrives on the card.

    model -> allocations of its parameters and buffers

In the order of `Module.to`: children before their parents, parameters before buffers; a tied weight
once. Not modelled: peaks of loading itself (a checkpoint read on the card).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from estimator.frontends.pytorch.record import Recorder
from estimator.trace import COMPANION, Phase, Role


def load_model(recorder: Recorder, *models: nn.Module) -> None:
    """Record every tensor of the trained model, then of those beside it, as allocated."""
    recorder.enter(Phase.LOAD, step=0)
    for index, model in enumerate(models):
        prefix = f"{COMPANION}{index - 1}." if index else ""
        recorder.adopt(_tensors(model, prefix), Role.PARAMETER)


def on_stand_ins(model: nn.Module) -> nn.Module:
    """Return *model* with the tiny tensors that were made for real replaced by stand-ins."""
    seen: dict[int, torch.Tensor] = {}
    for module in model.modules():
        stores: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for store in stores:
            for name, tensor in store.items():
                if tensor is not None and not tensor.is_meta:
                    if id(tensor) not in seen:
                        seen[id(tensor)] = _stand_in(tensor)
                    store[name] = seen[id(tensor)]
    return model


def _stand_in(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made


def _tensors(module: nn.Module, prefix: str) -> Iterator[tuple[str, torch.Tensor]]:
    for name, child in module.named_children():
        yield from _tensors(child, f"{prefix}{name}.")
    for store in (module._parameters, module._buffers):
        for name, tensor in store.items():
            if tensor is not None:
                yield prefix + name, tensor
