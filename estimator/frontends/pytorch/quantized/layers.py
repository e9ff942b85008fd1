"""Linear layers with packed weights, on stand-ins.

    nn.Linear -> a layer that holds what its library holds

Sizes, for a weight of n rows and k columns:
* 4 bits (bitsandbytes): n*k/2 bytes, and a float32 maximum for every 64 weights. Nested: those
  maxima in a byte each with a float32 for every 256, one offset, and a table of 256 values.
* int8 (bitsandbytes): n*k bytes and a float32 a row.
* GPTQ, AWQ: n*k*bits/8 bytes in int32, and for every group of 128 rows of the input a float16
  scale and a packed zero a column; GPTQ has an int32 index a column of the weight too.
Source: bitsandbytes 0.50.2 `functional.py` (`quantize_4bit`, `quantize_blockwise`), `nn/modules.py`
(`Int8Params`); AutoGPTQ and AutoAWQ `QuantLinear`/`WQLinear` buffers as in transformers 5.24.0
`integrations/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from bitsandbytes.nn import Linear4bit, Linear8bitLt
from torch import nn

from estimator.frontends.pytorch.quantized import products

BLOCK = 64
NESTED_BLOCK = 256
TABLE_4, TABLE_8 = 16, 256
GROUP = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class FourBit:
    """How 4-bit layers are stored and used."""

    scheme: str
    is_nested: bool
    compute: torch.dtype
    stored_from: torch.dtype
    """The dtype the weights had, in which they are dequantised."""
    release: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """How layers of a GPTQ or AWQ checkpoint are stored and used."""

    scheme: str
    bits: int
    compute: torch.dtype


def four_bit(layer: nn.Linear, form: FourBit) -> nn.Module:
    """Return *layer* as bitsandbytes' `Linear4bit` with quantised weights."""
    return FourBitLinear(layer, form)


def int8(layer: nn.Linear, compute: torch.dtype) -> nn.Module:
    """Return *layer* as bitsandbytes' `Linear8bitLt` with quantised weights."""
    return Int8Linear(layer, compute)


def packed(layer: nn.Linear, form: Packed) -> nn.Module:
    """Return *layer* as one of a GPTQ or AWQ checkpoint."""
    return PackedLinear(layer, form)


class FourBitLinear(Linear4bit):  # type: ignore[misc]
    """peft knows it for what it is; products and storage are ours."""

    def __init__(self, layer: nn.Linear, form: FourBit) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        elements = layer.in_features * layer.out_features
        self.weight = _frozen((elements + 1) // 2, 1, dtype=torch.uint8)
        self.weight.compress_statistics = form.is_nested
        self.weight.quant_type = form.scheme
        self.compute_dtype = form.compute
        self.form = form
        blocks = -(-elements // BLOCK)
        kind = torch.uint8 if form.is_nested else torch.float32
        self.register_buffer("absmax", _empty(blocks, dtype=kind))
        self.register_buffer("code", _empty(TABLE_4))
        if form.is_nested:
            self.register_buffer("nested_absmax", _empty(-(-blocks // NESTED_BLOCK)))
            self.register_buffer("nested_code", _empty(TABLE_8))
            self.register_buffer("offset", _empty())
        self.bias = _bias(layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the product with the dequantised weight, in the dtype of *x*."""
        given = x.dtype
        bias = None if self.bias is None else self.bias.to(self.form.compute)
        return products.four_bit(x.to(self.form.compute), self.weight, bias, self).to(given)

    def dequantised(self) -> torch.Tensor:
        """Return the weight as it was before; nested statistics are opened first."""
        absmax = self.absmax
        if self.form.is_nested:
            absmax = torch.empty(absmax.shape, dtype=torch.float32, device=absmax.device)
            absmax += self.offset
        shape = (self.out_features, self.in_features)
        return torch.empty(shape, dtype=self.form.stored_from, device=absmax.device)


class Int8Linear(Linear8bitLt):  # type: ignore[misc]
    """peft knows it for what it is; products and storage are ours."""

    def __init__(self, layer: nn.Linear, compute: torch.dtype) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight = _frozen(layer.out_features, layer.in_features, dtype=torch.int8)
        self.register_buffer("SCB", _empty(layer.out_features))
        self.compute = compute
        self.index = None
        self.state = SimpleNamespace(has_fp16_weights=False, threshold=6.0)
        self.bias = _bias(layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the product in the dtype of *x*."""
        return products.int8(x, self.weight, self.bias, self.SCB)


class PackedLinear(nn.Linear):
    """A layer of a GPTQ or AWQ checkpoint; its weight is opened whole for every product."""

    def __init__(self, layer: nn.Linear, form: Packed) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        per_word = 32 // form.bits
        groups = -(-layer.in_features // GROUP)
        words = -(-layer.in_features // per_word)
        self.weight = _frozen(words, layer.out_features, dtype=torch.int32)
        zeros = (groups, -(-layer.out_features // per_word))
        self.register_buffer("qzeros", _empty(*zeros, dtype=torch.int32))
        self.register_buffer("scales", _empty(groups, layer.out_features, dtype=torch.float16))
        if form.scheme == "gptq":
            self.register_buffer("g_idx", _empty(layer.in_features, dtype=torch.int32))
        self.form = form
        self.bias = _bias(layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the product with the opened weight, in the dtype of *x*."""
        opened = products.Opened.apply(
            x.to(self.form.compute), self.weight, (self.out_features, self.in_features)
        )
        out: torch.Tensor = opened.to(x.dtype)
        return out if self.bias is None else out + self.bias


def _empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def _frozen(*shape: int, dtype: torch.dtype) -> Any:
    return nn.Parameter(_empty(*shape, dtype=dtype), requires_grad=False)


def _bias(layer: nn.Linear) -> Any:
    return None if layer.bias is None else nn.Parameter(layer.bias.data, requires_grad=False)
