"""Distributed data parallel on one rank: the buckets gradients are reduced in.

    parameters, Parallelism -> bucket sizes, gradient hooks

Source: torch 2.15.0 `nn/parallel/distributed.py` and `csrc/distributed/c10d/reducer.cpp`: the first
bucket holds 1 MiB, the others 25 MiB, parameters in reverse order. Not modelled: NCCL's own buffers
(`estimator.overheads`), `static_graph`, communication hooks.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from estimator.units import MIB

FIRST_BUCKET = MIB


def bucket_sizes(parameters: Sequence[torch.nn.Parameter], bucket_bytes: int) -> list[int]:
    """Return the bytes of each bucket. A parameter is never split."""
    sizes: list[int] = []
    filled: dict[torch.dtype, int] = {}
    limit = FIRST_BUCKET
    for parameter in reversed(parameters):
        nbytes = parameter.numel() * parameter.element_size()
        total = filled.pop(parameter.dtype, 0) + nbytes
        if total >= limit:
            sizes.append(total)
            limit = bucket_bytes
        else:
            filled[parameter.dtype] = total
    return sizes + list(filled.values())


class BucketViews:
    """`gradient_as_bucket_view=True`: gradients move into the buckets as soon as they are made."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        self.views = {id(p): torch.empty_like(p).requires_grad_(False) for p in parameters}
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._move)  # type: ignore[no-untyped-call]

    def _move(self, parameter: torch.Tensor) -> None:
        parameter.grad = self.views[id(parameter)]
