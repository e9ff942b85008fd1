"""A model written as a list of layers in the spec.

model.config {inputShape, layers} -> Built
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from estimator.errors import Problem, SpecError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.classification import classifier, require_classification
from estimator.frontends.pytorch.build.job import Built
from estimator.spec import JobPhase, JobSpec

MAX_LAYERS = 4096
MAX_SIZE = 1 << 24

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "identity": nn.Identity,
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "leakyrelu": nn.LeakyReLU,
    "prelu": nn.PReLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "celu": nn.CELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "mish": nn.Mish,
    "softplus": nn.Softplus,
    "softsign": nn.Softsign,
    "sigmoid": nn.Sigmoid,
    "logsigmoid": nn.LogSigmoid,
    "hardsigmoid": nn.Hardsigmoid,
    "hardswish": nn.Hardswish,
    "hardtanh": nn.Hardtanh,
    "tanh": nn.Tanh,
    "tanhshrink": nn.Tanhshrink,
    "softmax": lambda: nn.Softmax(dim=1),
    "logsoftmax": lambda: nn.LogSoftmax(dim=1),
}
"""Activation names, lower case without underscores."""

RECURRENT: dict[str, Any] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
BATCH_NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
DROPOUTS = {1: nn.Dropout1d, 2: nn.Dropout2d, 3: nn.Dropout3d}
POOLS: dict[str, dict[int, Any]] = {
    "max": {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d},
    "avg": {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d},
    "adaptiveAvg": {1: nn.AdaptiveAvgPool1d, 2: nn.AdaptiveAvgPool2d, 3: nn.AdaptiveAvgPool3d},
}


class _Layer:
    """One entry of the list; collects problems while its keys are read."""

    def __init__(self, entry: Mapping[str, Any], path: str, axes: int) -> None:
        self.entry = entry
        self.path = path
        self.axes = axes
        self.problems: list[Problem] = []
        self.read = {"type"}

    def fail(self, key: str, message: str) -> None:
        self.problems.append(Problem(path=f"{self.path}.{key}", message=message))

    def whole(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        self.read.add(key)
        value = self.entry.get(key, default)
        if type(value) is not int or not least <= value <= MAX_SIZE:
            self.fail(key, f"{value!r:.60} is not a whole number from {least} to {MAX_SIZE}")
            return max(least, 1)
        return value

    def sizes(self, key: str, default: int | None = None, *, least: int = 1) -> Any:
        """Return a size for each axis: one number, or a list of them."""
        value = self.entry.get(key, default)
        if isinstance(value, list) and len(value) == self.axes:
            self.read.add(key)
            good = all(type(v) is int and least <= v <= MAX_SIZE for v in value)
            if good:
                return tuple(value)
        return self.whole(key, default, least=least)

    def flag(self, key: str, default: bool) -> bool:
        self.read.add(key)
        value = self.entry.get(key, default)
        if not isinstance(value, bool):
            self.fail(key, f"{value!r:.60} is not true or false")
        return bool(value)

    def rate(self) -> float:
        self.read.add("rate")
        value = self.entry.get("rate", 0.5)
        if not isinstance(value, (int, float)) or not 0 <= value <= 1:
            self.fail("rate", f"{value!r:.60} is not a number from 0 to 1")
            return 0.5
        return float(value)

    def word(self, key: str, known: Mapping[str, Any], default: str = "") -> str:
        self.read.add(key)
        text = str(self.entry.get(key, default))
        if text not in known:
            self.fail(key, f"'{text:.60}' is not one of {', '.join(known)}")
            return next(iter(known))
        return text

    def unread(self) -> None:
        for key in self.entry:
            if key not in self.read:
                self.fail(str(key), "unknown key")


def _linear(layer: _Layer) -> nn.Module:
    return nn.Linear(layer.whole("in"), layer.whole("out"), bias=layer.flag("bias", True))


def _convolution(layer: _Layer) -> nn.Module:
    transposed = layer.flag("transposed", False)
    names = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
    kind: Any = names[layer.axes] if transposed else CONVOLUTIONS[layer.axes]
    module: nn.Module = kind(
        layer.whole("in"),
        layer.whole("out"),
        layer.sizes("kernel"),
        stride=layer.sizes("stride", 1),
        padding=layer.sizes("padding", 0, least=0),
        dilation=layer.sizes("dilation", 1),
        groups=layer.whole("groups", 1),
        bias=layer.flag("bias", True),
    )
    return module


def _batch_norm(layer: _Layer) -> nn.Module:
    return BATCH_NORMS[layer.axes](layer.whole("features"))


def _layer_norm(layer: _Layer) -> nn.Module:
    return nn.LayerNorm(layer.whole("features"))


def _activation(layer: _Layer) -> nn.Module:
    layer.read.add("name")
    name = str(layer.entry.get("name", "")).lower().replace("_", "")
    if name not in ACTIVATIONS:
        layer.fail("name", f"'{name:.60}' is not one of {', '.join(ACTIVATIONS)}")
        return nn.Identity()
    return ACTIVATIONS[name]()


def _dropout(layer: _Layer) -> nn.Module:
    kind = DROPOUTS[layer.axes] if layer.flag("channels", False) else nn.Dropout
    return kind(layer.rate())


def _pooling(layer: _Layer) -> nn.Module:
    kind = layer.word("kind", POOLS, "max")
    if kind == "adaptiveAvg":
        module: nn.Module = POOLS[kind][layer.axes](layer.sizes("out", 1))
        return module
    kernel = layer.sizes("kernel", 2)
    stride = layer.sizes("stride", 2) if "stride" in layer.entry else None
    padding = layer.sizes("padding", 0, least=0)
    pooled: nn.Module = POOLS[kind][layer.axes](kernel, stride, padding)
    return pooled


def _flatten(_: _Layer) -> nn.Module:
    return nn.Flatten()


def _embedding(layer: _Layer) -> nn.Module:
    return nn.Embedding(layer.whole("in"), layer.whole("out"))


class _Recurrent(nn.Module):
    """A recurrent layer whose output goes on alone: of every step, or of the last."""

    def __init__(self, layer: nn.RNNBase, *, sequences: bool) -> None:
        super().__init__()
        self.layer = layer
        self.sequences = sequences

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        """Return (batch, steps, features), or (batch, features) of the last step."""
        found: torch.Tensor = self.layer(steps)[0]
        return found if self.sequences else found[:, -1]


def _recurrent(layer: _Layer) -> nn.Module:
    made = RECURRENT[str(layer.entry["type"])](
        layer.whole("in"),
        layer.whole("out"),
        num_layers=layer.whole("layers", 1),
        bidirectional=layer.flag("bidirectional", False),
        batch_first=True,
    )
    return _Recurrent(made, sequences=layer.flag("sequences", False))


LAYERS: dict[str, Callable[[_Layer], nn.Module]] = {
    "linear": _linear,
    "conv": _convolution,
    "batchNorm": _batch_norm,
    "layerNorm": _layer_norm,
    "activation": _activation,
    "dropout": _dropout,
    "pooling": _pooling,
    "flatten": _flatten,
    "embedding": _embedding,
    **dict.fromkeys(RECURRENT, _recurrent),
}
"""Layer types and what makes them."""


def build_layers(spec: JobSpec, _: Notebook) -> Built:
    """Return the sequence of layers of `model.config`, with a cross-entropy loss on its output.

    Raises:
        SpecError: with every problem of the list.
    """
    require_classification(spec)
    config = spec.model.config
    problems = [
        Problem(path=f"model.config.{key}", message="unknown key; inputShape and layers are known")
        for key in config
        if key not in ("inputShape", "layers")
    ]
    shape = _input_shape(spec, problems)
    entries = config.get("layers")
    if not isinstance(entries, list) or not 0 < len(entries) <= MAX_LAYERS:
        message = f"a list of 1 to {MAX_LAYERS} layers is expected"
        problems.append(Problem(path="model.config.layers", message=message))
        raise SpecError(problems)
    modules: list[nn.Module] = []
    axes = max(1, len(shape) - 1)
    for index, entry in enumerate(entries):
        path = f"model.config.layers[{index}]"
        kind = entry.get("type") if isinstance(entry, Mapping) else None
        if not isinstance(kind, str) or kind not in LAYERS:
            message = f"{kind!r:.60} is not one of {', '.join(LAYERS)}"
            problems.append(Problem(path=f"{path}.type", message=message))
            continue
        layer = _Layer(entry, path, 1 if any(isinstance(m, nn.Flatten) for m in modules) else axes)
        try:
            modules.append(LAYERS[kind](layer))
        except (ValueError, RuntimeError) as error:
            layer.fail("type", " ".join(str(error).split())[:200])
        layer.unread()
        problems.extend(layer.problems)
    if problems:
        raise SpecError(problems)
    if spec.phase is JobPhase.TRAIN and not any(True for m in modules for _ in m.parameters()):
        message = "no layer has a parameter: there is nothing to train"
        raise SpecError([Problem(path="model.config.layers", message=message)])
    is_indexed = isinstance(modules[0], nn.Embedding)
    return classifier(spec, nn.Sequential(*modules), size=shape, is_indexed=is_indexed)


def _input_shape(spec: JobSpec, problems: list[Problem]) -> tuple[int, ...]:
    """Return the shape of one sample, from the config or from the input."""
    shape: Any = spec.model.config.get("inputShape", spec.input.shape or spec.input.image_size)
    good = isinstance(shape, (list, tuple)) and 0 < len(shape) <= 4
    if not good or not all(type(n) is int and 1 <= n <= MAX_SIZE for n in shape):
        message = f"{shape!r:.60} is not a list of 1 to 4 sizes up to {MAX_SIZE}"
        problems.append(Problem(path="model.config.inputShape", message=message))
        return (1,)
    return tuple(shape)
