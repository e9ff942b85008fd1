"""Gradients scaled between backward and the optimizer's step: by a norm, or by a loss scale.

    gradients -> the same gradients, in place

Both run as torch does them on a card. Norms are one number a tensor, each a block of its own;
the gradients are changed in place. From torch 2.0 on both work on lists of tensors.
Source: torch/nn/utils/clip_grad.py, torch/amp/grad_scaler.py (`_unscale_grads_`, `update`).
Not modelled: steps that a scaler skips, which allocate less; `clip_grad_value_`, which is in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch.nn.utils import clip_grad_norm_
from torch.utils import _foreach_utils

from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.versions import Version

LISTS_SINCE: Version = (2, 0)
"""First version whose clipping works on lists of tensors where it may."""
ON_CARD = ["meta"]


def clip(parameters: Iterable[torch.Tensor], version: Version) -> None:
    """Scale the gradients of *parameters* down to one norm over all of them."""
    with replaced(
        (_foreach_utils, "_get_foreach_kernels_supported_devices", lambda: ON_CARD),
    ):
        clip_grad_norm_(list(parameters), 1.0, foreach=version >= LISTS_SINCE)


class LossScale:
    """The numbers a GradScaler keeps on the card, and what it does with them."""

    def __init__(self) -> None:
        self.scale = torch.empty((), device="meta")
        self.tracker = torch.empty((), dtype=torch.int32, device="meta")
        self.found: torch.Tensor | None = None

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        """Return *loss* times the scale."""
        return loss * self.scale

    def unscale(self, gradients: Sequence[torch.Tensor]) -> None:
        """Divide *gradients* by the scale, in place, and note whether one is no number."""
        self.found = torch.zeros((), device="meta")
        inverse = self.scale.double().reciprocal().float()
        torch._amp_foreach_non_finite_check_and_unscale_(list(gradients), self.found, inverse)

    def update(self) -> None:
        """Make the scale of the next step."""
        if self.found is not None:
            torch._amp_update_scale_(self.scale, self.tracker, self.found, 2.0, 0.5, 2000)
            self.found = None
