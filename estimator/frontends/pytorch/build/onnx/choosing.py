"""Operators that choose elements by their place or value.

    Call -> tensor, or several

Source: onnx/onnx `docs/Operators.md`, release 1.23.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch.nn import functional

from estimator.frontends.pytorch.build.onnx.call import Call, Result


def _gather(call: Call) -> torch.Tensor:
    data, indices = call.tensor(0), call.given(1)
    axis = call.whole("axis", 0)
    if not indices.is_meta and indices.dim() == 0:
        return data.select(axis, int(indices.item()))
    if isinstance(data, torch.nn.Parameter) and data.dim() == 2 and axis == 0:
        return functional.embedding(call.tensor(1), data)
    index = call.tensor(1)
    made = data.index_select(axis, index.reshape(-1))
    axis %= data.dim()
    return made.reshape(*data.shape[:axis], *index.shape, *data.shape[axis + 1 :])


def _gather_elements(call: Call) -> torch.Tensor:
    return call.tensor(0).gather(call.whole("axis", 0), call.tensor(1))


def _gather_many(call: Call) -> torch.Tensor:
    """Return `GatherND`: its last axis of indices names one place in the first axes."""
    data, indices = call.tensor(0), call.tensor(1)
    if call.whole("batch_dims", 0):
        raise call.refused("gathers in each batch by itself, which is not modelled")
    return data[tuple(indices.unbind(-1))]


def _scattered(call: Call) -> torch.Tensor:
    data, indices, updates = call.tensor(0), call.tensor(1), call.tensor(2)
    return data.scatter(call.whole("axis", 0), indices, updates)


def _scattered_many(call: Call) -> torch.Tensor:
    data, indices, updates = call.tensor(0), call.tensor(1), call.tensor(2)
    return data.index_put(tuple(indices.unbind(-1)), updates)


def _triangle(call: Call) -> torch.Tensor:
    kind = torch.triu if call.whole("upper", 1) else torch.tril
    return kind(call.tensor(), call.first(1) if call.has(1) else 0)


def _one_hot(call: Call) -> torch.Tensor:
    depth = call.first(1)
    made = functional.one_hot(call.tensor(0).long(), depth)
    return made.movedim(-1, call.whole("axis", -1)).to(call.given(2).dtype)


def _sum_so_far(call: Call) -> torch.Tensor:
    return call.tensor().cumsum(call.first(1))


def _top(call: Call) -> Result:
    count = call.first(1) if call.has(1) else call.whole("k", 1)
    return call.tensor().topk(count, call.whole("axis", -1))


CHOICES: Mapping[str, Callable[[Call], Result]] = {
    "CumSum": _sum_so_far,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_many,
    "OneHot": _one_hot,
    "ScatterElements": _scattered,
    "ScatterND": _scattered_many,
    "TopK": _top,
    "Trilu": _triangle,
}
