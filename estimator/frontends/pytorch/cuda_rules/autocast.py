"""`torch.autocast("cuda")` for stand-ins: which functions run in which dtype.

    function call under autocast -> the same call with cast arguments

Autocast keys belong to a backend and do nothing for tensors that are not on it, so the lists are
applied here, function by function. Source: `ATen/autocast_mode.h` of torch 2.15.0, lists for CUDA.
A trained fp32 weight's cast is kept until the region ends, with gradients on or off: checkpointed
forwards and evaluation fill the cache too (`cached_cast` in aten/src/ATen/autocast_mode.cpp asks
for fp32, `requires_grad`, `is_leaf`, no view; newer versions for no inference mode). Not modelled:
functions called inside C++ composites that no Python name reaches, and the lists before 2.4, whose
headers do not ship them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from estimator.frontends.pytorch.versions import Version

LOWER = frozenset(
    [
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "conv_tbc",
        "convolution",
        "prelu",
        "addmm",
        "addmv",
        "addr",
        "matmul",
        "__matmul__",
        "__rmatmul__",
        "einsum",
        "mm",
        "mv",
        "linear",
        "addbmm",
        "baddbmm",
        "bmm",
        "chain_matmul",
        "linalg_vecdot",
        "linalg_multi_dot",
        "multi_dot",
        "gru",
        "lstm",
        "lstm_cell",
        "rnn_relu",
        "rnn_tanh",
        "gru_cell",
        "rnn_tanh_cell",
        "rnn_relu_cell",
        "scaled_dot_product_attention",
        "vecdot",
    ]
)
"""Functions that run in the lower dtype."""

FP32 = frozenset(
    [
        "acos",
        "asin",
        "cosh",
        "exp",
        "expm1",
        "log",
        "log10",
        "log2",
        "log1p",
        "pow",
        "__pow__",
        "__rpow__",
        "reciprocal",
        "rsqrt",
        "sinh",
        "tan",
        "erfinv",
        "softplus",
        "layer_norm",
        "group_norm",
        "frobenius_norm",
        "nuclear_norm",
        "cosine_similarity",
        "poisson_nll_loss",
        "cosine_embedding_loss",
        "nll_loss",
        "nll_loss_nd",
        "nll_loss2d",
        "hinge_embedding_loss",
        "kl_div",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "mse_loss",
        "margin_ranking_loss",
        "multilabel_margin_loss",
        "soft_margin_loss",
        "triplet_margin_loss",
        "multi_margin_loss",
        "binary_cross_entropy_with_logits",
        "dist",
        "pdist",
        "cdist",
        "renorm",
        "logsumexp",
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "_upsample_nearest_exact2d",
        "upsample_linear1d",
        "upsample_bilinear2d",
        "_upsample_bilinear2d_aa",
        "upsample_trilinear3d",
        "upsample_bicubic2d",
        "_upsample_bicubic2d_aa",
        "norm",
        "linalg_norm",
        "linalg_vector_norm",
        "linalg_matrix_norm",
        "cross_entropy_loss",
        "ctc_loss",
    ]
)
"""Functions that run in fp32. `cross_entropy_loss` is log-softmax and nll, both of this list."""

LATER_FP32 = {"rms_norm": (2, 12)}
"""Functions that joined `FP32` in that version.

Source: `AT_FORALL_FP32` in ATen/autocast_mode.h of the wheels 2.4.1, 2.6.0, 2.9.1-2.15.0, which
differ in nothing else.
"""

FP32_IF_NO_DTYPE = frozenset(["prod", "softmax", "log_softmax", "cumprod", "cumsum", "sum"])
"""Functions whose result is fp32 unless the call names a dtype."""

WIDEST = frozenset(
    [
        "addcdiv",
        "addcmul",
        "atan2",
        "bilinear",
        "cross",
        "dot",
        "vdot",
        "grid_sampler",
        "index_put",
        "tensordot",
        "scatter_add",
    ]
)
"""Functions that take the widest of their inputs' dtypes."""

HALVES = (torch.float16, torch.bfloat16)
_OVERRIDES = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


class Autocast(TorchFunctionMode):
    """One autocast region: keeps the casts of weights until it ends."""

    def __init__(self, dtype: torch.dtype, version: Version) -> None:
        super().__init__()
        self.dtype = dtype
        self.fp32 = FP32.union(name for name, since in LATER_FP32.items() if version >= since)
        self._casts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name in LOWER:
            args, kwargs = self._map(self._lower, args, kwargs)
        elif name in self.fp32:
            args, kwargs = self._map(_raise, args, kwargs)
        elif name in FP32_IF_NO_DTYPE:
            args, kwargs = _with_fp32(args, kwargs or {})
        elif name in WIDEST:
            args, kwargs = self._widest(args, kwargs)
        return func(*args, **kwargs) if kwargs else func(*args)

    def _map(self, cast: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        values = tuple(_each(cast, value) for value in args)
        return values, {k: _each(cast, v) for k, v in kwargs.items()} if kwargs else kwargs

    def _lower(self, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point() or tensor.dtype in (self.dtype, torch.float64):
            return tensor
        weight = tensor.is_leaf and tensor.requires_grad and tensor.dtype is torch.float32
        if not weight or tensor._is_view():
            return tensor.to(self.dtype)
        known = self._casts.get(id(tensor))
        if known is None:
            with torch.enable_grad():
                known = self._casts[id(tensor)] = (tensor, tensor.to(self.dtype))
        return known[1]

    def _widest(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        if any(tensor.dtype is torch.float32 for tensor in tensors):
            return self._map(_raise, args, kwargs)
        return args, kwargs


def _each(cast: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return cast(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
        return type(value)(_each(cast, item) for item in value)
    return value


def _raise(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype in HALVES else tensor


def _with_fp32(args: Any, kwargs: Any) -> tuple[Any, Any]:
    half = args and isinstance(args[0], torch.Tensor) and args[0].dtype in HALVES
    if not half or kwargs.get("dtype") is not None:
        return args, kwargs
    return args, {**kwargs, "dtype": torch.float32}


def region_of(
    dtype: torch.dtype | None, version: Version
) -> Callable[[], AbstractContextManager[Any]]:
    """Return what opens an autocast region of *version* in *dtype*, or nothing for None."""
    if dtype is None:
        return nullcontext
    return lambda: Autocast(dtype, version)


@contextmanager
def bodies_visible() -> Iterator[None]:
    """Let Python functions of `torch.nn.functional` show the functions they are made of.

    Under a function mode they hand themselves over whole; here their bodies must run.
    """
    places = (torch.nn.functional, torch.functional, torch._tensor)
    saved = [(place, name, getattr(place, name, None)) for place in places for name in _OVERRIDES]
    for place, name, value in saved:
        if value is not None:
            setattr(place, name, lambda *_: False)
    try:
        yield
    finally:
        for place, name, value in saved:
            if value is not None:
                setattr(place, name, value)
