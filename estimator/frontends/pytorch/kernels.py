"""Which operators are library calls that may want scratch memory on a card.

    operator call -> Kernel

Says what was called with which shapes; how much scratch that takes is for `estimator.kernels`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from estimator.frontends.pytorch.cuda_rules.layout import is_channels_last
from estimator.frontends.pytorch.dtypes import name_of
from estimator.trace import Kernel, Phase, TensorFacts

aten = torch.ops.aten

Attribute = tuple[str, int | float | bool | str | tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MathSettings:
    """Switches of the run that choose among library kernels."""

    benchmark: bool = False
    deterministic: bool = False
    matmul_tf32: bool = False
    convolution_tf32: bool = True


def facts_of(tensor: torch.Tensor) -> TensorFacts:
    """Return shape, dtype and memory format of *tensor*."""
    return TensorFacts(
        shape=tuple(tensor.shape),
        dtype=name_of(tensor.dtype),
        channels_last=is_channels_last(tensor),
    )


def _tensors(*values: Any) -> tuple[TensorFacts, ...]:
    return tuple(facts_of(value) for value in values if isinstance(value, torch.Tensor))


def _convolution(settings: MathSettings, args: Any, result: Any) -> tuple[Any, list[Attribute]]:
    """Operands input, weight, output; `aten.convolution(input, weight, bias, stride, …)`."""
    stride, padding, dilation, transposed, _, groups = args[3:9]
    attributes = _convolution_attributes(settings, stride, padding, dilation, transposed, groups)
    return _tensors(args[0], args[1], result), attributes


def _convolution_backward(
    settings: MathSettings, args: Any, _result: Any
) -> tuple[Any, list[Attribute]]:
    """Operands input, weight, gradient of the output; `output_mask` says what is computed."""
    stride, padding, dilation, transposed, _, groups, mask = args[4:11]
    attributes = _convolution_attributes(settings, stride, padding, dilation, transposed, groups)
    attributes.append(("output_mask", tuple(int(flag) for flag in mask)))
    return _tensors(args[1], args[2], args[0]), attributes


def _convolution_attributes(
    settings: MathSettings, stride: Any, padding: Any, dilation: Any, transposed: Any, groups: Any
) -> list[Attribute]:
    return [
        ("stride", tuple(stride)),
        ("padding", tuple(padding)),
        ("dilation", tuple(dilation)),
        ("groups", int(groups)),
        ("transposed", bool(transposed)),
        ("benchmark", settings.benchmark),
        ("deterministic", settings.deterministic),
        ("allow_tf32", settings.convolution_tf32),
    ]


def _matmul(settings: MathSettings, args: Any, result: Any) -> tuple[Any, list[Attribute]]:
    return _tensors(*args[:3], result), [("allow_tf32", settings.matmul_tf32)]


def _attention(_settings: MathSettings, args: Any, _result: Any) -> tuple[Any, list[Attribute]]:
    """Operands query, key, value; backward takes the gradient of the output first."""
    return _tensors(*args[:3]), []


def _attention_backward(
    _settings: MathSettings, args: Any, _result: Any
) -> tuple[Any, list[Attribute]]:
    return _tensors(*args[1:4]), []


def _plain(_settings: MathSettings, args: Any, _result: Any) -> tuple[Any, list[Attribute]]:
    return _tensors(*args), []


def _index_put(_settings: MathSettings, args: Any, _result: Any) -> tuple[Any, list[Attribute]]:
    """Operands self, indices, values; only sums sort their indices."""
    accumulate = len(args) > 3 and bool(args[3])
    operands = _tensors(args[0], *args[1], args[2]) if accumulate else None
    return operands, [("accumulate", accumulate)]


def _along(_settings: MathSettings, args: Any, _result: Any) -> tuple[Any, list[Attribute]]:
    """The dimension that is sorted: `sort(x, dim)`, `topk(x, k, dim)`."""
    return _tensors(args[0]), [("dim", int(args[1]) if len(args) > 1 else -1)]


def _stable(_settings: MathSettings, args: Any, _result: Any) -> tuple[Any, list[Attribute]]:
    """`sort.stable(x, *, stable, dim)`: what is not given by keyword is the last dimension."""
    return _tensors(args[0]), [("dim", int(args[2]) if len(args) > 2 else -1)]


def _largest(_settings: MathSettings, args: Any, _result: Any) -> tuple[Any, list[Attribute]]:
    dim = int(args[2]) if len(args) > 2 else -1
    return _tensors(args[0]), [("k", int(args[1])), ("dim", dim)]


def _embedding_backward(
    _settings: MathSettings, args: Any, _result: Any
) -> tuple[Any, list[Attribute]]:
    """`embedding_dense_backward(gradient, indices, num_weights, …)`."""
    return _tensors(*args[:2]), [("num_weights", int(args[2]))]


def _recurrent(_settings: MathSettings, args: Any, _result: Any) -> tuple[Any, list[Attribute]]:
    """`_cudnn_rnn(input, weight, stride, flat, hx, cx, mode, hidden, …, bidirectional, …)`."""
    attributes: list[Attribute] = [("mode", int(args[6])), ("hidden", int(args[7]))]
    attributes.append(("directions", 2 if args[13] else 1))
    return _tensors(args[0]), attributes


def _recurrent_backward(
    _settings: MathSettings, args: Any, _result: Any
) -> tuple[Any, list[Attribute]]:
    """The same four arguments later: output and three gradients come before the mode."""
    attributes: list[Attribute] = [("mode", int(args[10])), ("hidden", int(args[11]))]
    attributes.append(("directions", 2 if args[17] else 1))
    return _tensors(args[0]), attributes


NAMES = {"aten._index_put_impl_": "aten.index_put_"}
"""Operators that are another one by its inner name."""

Rule = Callable[[MathSettings, Any, Any], tuple[Any, list[Attribute]]]

RULES: dict[Any, Rule] = {
    aten.convolution.default: _convolution,
    aten.convolution_backward.default: _convolution_backward,
    aten.mm.default: _matmul,
    aten.addmm.default: _matmul,
    aten.bmm.default: _matmul,
    aten.baddbmm.default: _matmul,
    aten.mv.default: _matmul,
    aten.addmv.default: _matmul,
    aten.addbmm.default: _matmul,
    aten.dot.default: _matmul,
    aten.vdot.default: _matmul,
    aten._addmm_activation.default: _matmul,
    aten._grouped_mm.default: _matmul,
    aten._scaled_dot_product_flash_attention.default: _attention,
    aten._scaled_dot_product_efficient_attention.default: _attention,
    aten._scaled_dot_product_flash_attention_backward.default: _attention_backward,
    aten._scaled_dot_product_efficient_attention_backward.default: _attention_backward,
    aten.native_batch_norm.default: _plain,
    aten.native_batch_norm_backward.default: _plain,
    aten.embedding_dense_backward.default: _embedding_backward,
    aten.sort.default: _along,
    aten.sort.stable: _stable,
    aten.argsort.default: _along,
    aten.topk.default: _largest,
    aten.cumsum.default: _plain,
    aten._cudnn_rnn.default: _recurrent,
    aten._cudnn_rnn_backward.default: _recurrent_backward,
    aten.logsumexp.default: _plain,
    aten._euclidean_dist.default: _plain,
    aten.dist.default: _plain,
    aten.soft_margin_loss.default: _plain,
    aten.binary_cross_entropy_with_logits.default: _plain,
    aten._unique2.default: _plain,
    aten.index_put.default: _index_put,
    aten.index_put_.default: _index_put,
    aten._index_put_impl_.default: _index_put,
    aten._fft_r2c.default: _plain,
    aten._fft_c2r.default: _plain,
    aten._fft_c2c.default: _plain,
}
"""Operators with scratch on CUDA. Not modelled: reductions (their scratch is under 1 MiB)."""


class KernelRules:
    """Makes kernels, each of them once for equal arguments."""

    def __init__(self, settings: MathSettings) -> None:
        self.settings = settings
        self.rules = RULES
        self._seen: dict[Any, Kernel] = {}

    def kernel_of(
        self,
        func: Any,
        name: str,
        key: Any,
        args: Any,
        result: Any,
        phase: Phase,
    ) -> Kernel | None:
        """Return the kernel of this call. `thread` tells the forward from the autograd handle."""
        thread = "autograd" if phase is Phase.BACKWARD else "forward"
        seen = (func, key, thread)
        kernel = self._seen.get(seen) if key is not None else None
        if kernel is None:
            operands, attributes = self.rules[func](self.settings, args, result)
            if operands is None:
                return None
            name = NAMES.get(name, name)
            attributes.append(("thread", thread))
            kernel = Kernel(operator=name, operands=operands, attributes=tuple(attributes))
            if key is not None:
                self._seen[seen] = kernel
        return kernel
