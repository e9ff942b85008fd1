"""How a rule in Python reaches the kernel underneath it.

    rule of an autograd key -> the operator below autograd

Calling an operator from its own autograd rule would come back to the rule.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch


def below_autograd() -> AbstractContextManager[Any]:
    """Return a block in which operators skip autograd and are still watched."""
    guard: AbstractContextManager[Any] = torch._C._AutoDispatchBelowAutograd()
    return guard


def wants_gradient(*tensors: torch.Tensor) -> bool:
    """Return whether autograd would record an operator on *tensors*."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
