"""Put the CUDA rules in force for the time of a trace.

    Traits -> kernels of the `meta` device's autograd key

The `meta` device stands in for the card, so its kernels may follow CUDA's choices. Registering
them with the dispatcher reaches every caller, however it imported the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from estimator.frontends.pytorch.cuda_rules.attention import attention_rule
from estimator.frontends.pytorch.cuda_rules.dropout import dropout
from estimator.traits import Traits


@contextmanager
def cuda_kernels(traits: Traits) -> Iterator[None]:
    """Let stand-ins behave as CUDA tensors on a card with *traits* inside the block."""
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    library.impl("dropout", dropout, "AutogradMeta")  # type: ignore[no-untyped-call]
    library.impl("scaled_dot_product_attention", attention_rule(traits), "AutogradMeta")  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        library._destroy()  # type: ignore[no-untyped-call]
