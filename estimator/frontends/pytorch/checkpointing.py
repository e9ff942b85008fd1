"""Activations that are dropped in the forward pass and computed again in the backward pass.

    model, GradientCheckpointing -> the model with checkpoints

* full: the library's own switch, every layer.
* full or selective with `every: n`: every n-th layer, whole, not reentrant unless told.
* selective: operator by operator in every layer. Attention and every first of two matrix products
  are kept, everything else is computed again (`policy: op`, torchtitan's).

A compiled block keeps what its backward pass reads, and no more: the last product of a block that
is only added to the residual stream is not kept, where operator by operator it is.

Source: pytorch 2.15.0 `utils/checkpoint.py` (`_CachingTorchDispatchMode`) and `_functorch/
partitioners.py` (`MUST_SAVE` bans computing again, it adds no output); pytorch/torchtitan@01db32e9
`torchtitan/distributed/activation_checkpoint.py` (`_apply_layer_sac`), and the policy torchtitan
had before it named its tensors ("saves output of all compute ops, except every second mm").
PyTorch's own checkpoints run, on stand-ins.
Not modelled: the policies of a compiler (`memory_budget`), products told apart by their shape,
torchtitan's list before December 2025 (b39377f9), which did not keep what cuDNN's attention makes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils import checkpoint as of_torch
from transformers.modeling_layers import GradientCheckpointingLayer

from estimator.errors import UnsupportedJobError
from estimator.notes import UnknownCode
from estimator.spec import CheckpointMode
from estimator.spec.training import GradientCheckpointing

if TYPE_CHECKING:
    from estimator.frontends.pytorch.build.job import Built

PATH = "training.gradientCheckpointing"
BY_OPERATOR = "op"

aten = torch.ops.aten
PRODUCT = aten.mm.default
KEPT = frozenset(
    {
        PRODUCT,
        aten._scaled_dot_product_efficient_attention.default,
        aten._scaled_dot_product_flash_attention.default,
        aten._scaled_dot_product_cudnn_attention.default,
        aten._scaled_dot_product_attention_math.default,
        aten._scaled_dot_product_fused_attention_overrideable.default,
        aten.max.default,
    }
)
"""Operators whose results stay under the policy `op`."""
SUMMING = frozenset(
    {
        aten.add.Tensor,
        aten.view.default,
        aten._unsafe_view.default,
        aten.reshape.default,
        aten.detach.default,
    }
)
"""Operators whose backward pass reads no value."""


def with_checkpoints(
    built: Built, asked: GradientCheckpointing, *, is_compiled: bool = False
) -> None:
    """Turn on the checkpoints *asked* for; *is_compiled*: in layers that a compiler sees whole.

    Raises:
        UnsupportedJobError: for models without a switch or without layers, and other policies.
    """
    if asked.mode is CheckpointMode.NONE:
        return
    is_by_operator = asked.mode is CheckpointMode.SELECTIVE and asked.every == 1
    if asked.policy not in (None, BY_OPERATOR) or (asked.policy and not is_by_operator):
        raise _unsupported(
            f"policy '{asked.policy}' is not modelled; known: '{BY_OPERATOR}', of selective "
            "checkpointing in every layer",
            f"{PATH}.policy",
        )
    if not is_by_operator and asked.every == 1:
        if built.checkpoint is None:
            raise _unsupported("this model has no switch for it", PATH)
        built.checkpoint(asked.reentrant)
        return
    layers = layers_of(built.model)
    if not layers:
        raise _unsupported("this model has no list of layers alike", PATH)
    _without_cache(built.model)
    reentrant = bool(asked.reentrant) and not is_by_operator
    for index, layer in enumerate(layers, start=1):
        if index % asked.every != 0:
            continue
        if is_by_operator:
            checkpointed_by_operator(layer, is_compiled=is_compiled)
        else:
            checkpointed(layer, reentrant=reentrant)


def layers_of(model: nn.Module) -> list[nn.Module]:
    """Return the layers of *model* that repeat: those transformers marks, else its longest list."""
    marked = [each for each in model.modules() if isinstance(each, GradientCheckpointingLayer)]
    if marked:
        return marked
    lists = [list(each) for each in model.modules() if isinstance(each, nn.ModuleList)]
    alike = [each for each in lists if len(each) > 1 and len({type(one) for one in each}) == 1]
    return max(alike, key=_elements, default=[])


def checkpointed(layer: nn.Module, *, reentrant: bool = False) -> None:
    """Let *layer* keep its inputs only."""
    _wrapped(
        layer,
        lambda run, *args: of_torch.checkpoint(
            run, *args, use_reentrant=reentrant, preserve_rng_state=False
        ),
    )


def checkpointed_by_operator(layer: nn.Module, *, is_compiled: bool = False) -> None:
    """Let *layer* keep its inputs and what the policy says."""

    def run(own: Callable[..., Any], *args: Any) -> Any:
        policy = Policy()
        make: Any = of_torch.create_selective_checkpoint_contexts
        again: Any = of_torch._RECOMPUTE
        forward, backward = make(policy)
        out = of_torch.checkpoint(
            own,
            *args,
            use_reentrant=False,
            preserve_rng_state=False,
            context_fn=lambda: (forward, backward),
        )
        if is_compiled and policy.ends_in_sum:
            forward.storage[PRODUCT][policy.num_products - 1] = again
        return out

    _wrapped(layer, run)


def _wrapped(layer: nn.Module, run: Callable[..., Any]) -> None:
    own = layer.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        if not (layer.training and torch.is_grad_enabled()):
            return own(*args, **kwargs)
        return run(partial(own, **kwargs), *args)

    layer.forward = forward


class Policy:
    """What the forward pass of one layer keeps. It sees every operator of the layer in order."""

    def __init__(self) -> None:
        self.num_products = 0
        self.ends_in_sum = False
        """Whether nothing but views and a sum followed the last product."""

    def __call__(self, _: Any, func: Any, *__: Any, **___: Any) -> of_torch.CheckpointPolicy:
        """Return whether the result of *func* is kept."""
        if func is PRODUCT:
            self.num_products += 1
            self.ends_in_sum = True
            if self.num_products % 2 == 0:
                return of_torch.CheckpointPolicy.PREFER_RECOMPUTE
        elif func not in SUMMING:
            self.ends_in_sum = False
        if func in KEPT:
            return of_torch.CheckpointPolicy.MUST_SAVE
        return of_torch.CheckpointPolicy.PREFER_RECOMPUTE


def _without_cache(model: Any) -> None:
    """Turn the KV cache off: a layer that ran twice would fill it twice."""
    config: Any = getattr(model, "config", None)
    if hasattr(config, "use_cache"):
        config.use_cache = False


def _elements(modules: list[nn.Module]) -> int:
    return sum(parameter.numel() for each in modules for parameter in each.parameters())


def _unsupported(reason: str, path: str) -> UnsupportedJobError:
    return UnsupportedJobError(f"{PATH}: {reason}", code=UnknownCode.FEATURE, path=path)
