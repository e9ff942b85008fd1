"""Make timm run as an older release of it does.

    release -> changes to timm while a model is built, and while it runs

Source: the wheels of timm 0.4.12, 0.5.4, 0.6.13, 0.9.2-1.0.29.
Not modelled: class attention of VOLO and XCiT (no fused kernel before 1.0.3) and pooling by
attention (before 1.0.7), which score one query or one map an image.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from timm.layers import config
from timm.models import hiera, vision_transformer
from torch.nn import functional

from estimator.frontends.pytorch.build.releases import Release
from estimator.frontends.pytorch.patches import replaced

FUSED_SINCE: Release = (0, 9)
"""First release that attends by `scaled_dot_product_attention`."""
FLAT_GLOBAL_ATTENTION_SINCE: Release = (1, 0, 26)
"""First release whose Hiera attends to all tokens in four dimensions, which fused kernels take."""
BIASES_APART_SINCE: Release = (1, 0, 25)
"""First release whose parallel blocks add the MLP's bias after the shared product."""


@contextmanager
def built_as(release: Release) -> Iterator[None]:
    """Let models that are built attend in parts where *release* has no fused attention."""
    fused = config._USE_FUSED_ATTN if release >= FUSED_SINCE else 0
    with replaced((config, "_USE_FUSED_ATTN", fused)):
        yield


@contextmanager
def run_as(release: Release) -> Iterator[None]:
    """Let models compute and keep what *release* does."""
    with ExitStack() as stack:
        if release < FLAT_GLOBAL_ATTENTION_SINCE:
            unit = hiera.MaskUnitAttention
            stack.enter_context(replaced((unit, "forward", _unit_attention)))
        if release < BIASES_APART_SINCE:
            block = vision_transformer.ParallelScalingBlock
            stack.enter_context(replaced((block, "forward", _with_bias_inside(block.forward))))
        yield


def _unit_attention(self: Any, x: torch.Tensor) -> torch.Tensor:
    """Return attention in units, the whole picture being one: queries have five dimensions.

    Source: `MaskUnitAttention.forward` in timm/models/hiera.py of 1.0.25.
    """
    batch, length, _ = x.shape
    whole = not self.use_mask_unit_attn
    units = 1 if whole else length // (self.q_stride * self.window_size)
    qkv = self.qkv(x).reshape(batch, -1, units, 3, self.heads, self.head_dim)
    q, k, v = qkv.permute(3, 0, 4, 2, 1, 5).unbind(0)
    del qkv
    if self.q_stride > 1:
        q = q.view(batch, self.heads, units, self.q_stride, -1, self.head_dim).amax(dim=3)
    if self.fused_attn:
        x = functional.scaled_dot_product_attention(q, k, v)
    else:
        x = ((q * self.scale) @ k.transpose(-1, -2)).softmax(dim=-1) @ v
    mixed: torch.Tensor = self.proj(x.transpose(1, 3).reshape(batch, -1, self.dim_out))
    return mixed


def _with_bias_inside(forward: Any) -> Any:
    """Return *forward* with the MLP's bias in the shared product, zeros for queries to values.

    Source: `ParallelScalingBlock.forward` in timm/models/vision_transformer.py of 1.0.24.
    """

    def inside(self: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        bias = self.mlp_bias
        if bias is None:
            return forward(self, x, *args, **kwargs)
        zeros = x.new_zeros(self.in_proj.out_features - bias.numel(), dtype=bias.dtype)
        self._parameters["mlp_bias"] = None
        self.in_proj._parameters["bias"] = torch.cat((bias, zeros))
        try:
            return forward(self, x, *args, **kwargs)
        finally:
            self._parameters["mlp_bias"], self.in_proj._parameters["bias"] = bias, None

    return inside
