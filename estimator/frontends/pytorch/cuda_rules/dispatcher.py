"""Put the CUDA rules in force for the time of a trace.

    Traits, version -> kernels of the `meta` device's autograd key

The `meta` device stands in for the card, so its kernels may follow CUDA's choices. Registering
them with the dispatcher reaches every caller, however it imported the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from estimator.frontends.pytorch.cuda_rules import norms, recurrent, saved
from estimator.frontends.pytorch.cuda_rules.activations import mish_backward
from estimator.frontends.pytorch.cuda_rules.attention import attention_rule, safe_softmax_rule
from estimator.frontends.pytorch.cuda_rules.dropout import dropout
from estimator.frontends.pytorch.cuda_rules.softmax import softmax_rule
from estimator.frontends.pytorch.versions import Version
from estimator.traits import Traits


@contextmanager
def cuda_kernels(traits: Traits, version: Version) -> Iterator[None]:
    """Let stand-ins behave as tensors of *version* on a card with *traits* inside the block."""
    rules: dict[str, Callable[..., Any]] = {
        "_safe_softmax": safe_softmax_rule(version),
        "dropout": dropout,
        "log_softmax.int": softmax_rule(torch.ops.aten._log_softmax),
        "mish_backward": mish_backward,
        "scaled_dot_product_attention": attention_rule(traits, version),
        "softmax.int": softmax_rule(torch.ops.aten._softmax),
        **dict(saved.rules_of(version)),
        **recurrent.RULES,
    }
    if version >= norms.FUSED_SINCE:
        rules["_fused_rms_norm"] = norms.rms_norm
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for operator, rule in rules.items():
        library.impl(operator, rule, "AutogradMeta")  # type: ignore[no-untyped-call]
    library.impl("_cudnn_rnn_backward", recurrent.backward, "Meta")  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        library._destroy()  # type: ignore[no-untyped-call]
