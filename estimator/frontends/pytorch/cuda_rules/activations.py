"""Gradients of activations that CUDA computes in one kernel and meta takes apart.

    gradient, x -> gradient of x

Source: `mish_backward` has kernels for CUDA and a decomposition for the rest
(`math_mish_backward` in ATen/native/Activation.cpp).
"""

from __future__ import annotations

import torch

from estimator.frontends.pytorch.cuda_rules.below import below_autograd


def mish_backward(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """Return a tensor like *x*: the kernel writes nothing else."""
    with below_autograd():
        return torch.empty_like(x)
