"""The forward graph of a spec, every shape known: the same whichever way it is run.

JobSpec -> Net
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from estimator.frontends.mxnet.common_expressions import eliminated
from estimator.frontends.mxnet.errors import invalid
from estimator.frontends.mxnet.graph import ITEM_BYTES, Entry, Node, Shape, in_order
from estimator.frontends.mxnet.inference import infer
from estimator.frontends.mxnet.symbol import read_symbol
from estimator.frontends.mxnet.versions import Release
from estimator.frontends.mxnet.zoo import zoo_model
from estimator.spec import JobSpec, ModelSource, Precision
from estimator.spec.model import Input, Model

OPTIONS = ("shapes", "types")
MAX_RANK = 8
HALF = (Precision.FP16,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """A forward graph. Nobody changes its nodes: what is bound to it reads them."""

    heads: tuple[Entry, ...]
    inputs: frozenset[str]
    """Names of what is fed: data and labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """All of a job that its forward graph depends on."""

    model: Model
    input: Input
    precision: Precision
    release: Release

    def __hash__(self) -> int:
        """Return the hash of what can be hashed; equality looks at all."""
        return hash((self.model.name, self.input.batch_size, self.precision))


def net_of(spec: JobSpec, release: Release) -> Net:
    """Return the forward graph of *spec*.

    Raises:
        SpecError: if the model or its shapes are not valid.
        UnsupportedJobError: if an operator is not modelled.
    """
    return _net(
        Asked(
            model=spec.model,
            input=spec.input,
            precision=spec.training.precision,
            release=release,
        )
    )


@lru_cache(maxsize=1)  # a job and the cheapest it may be differ in how it is run
def _net(asked: Asked) -> Net:
    document, image = _document(asked)
    heads = read_symbol(document, has_onednn=asked.release.has_onednn)
    if asked.release.merges_common:
        heads = eliminated(heads)
    order = in_order(heads)
    shapes, types = _fed(asked, order, image)
    infer(order, shapes, types)
    labels = {node.name for node in order if _is_label(node)}
    return Net(heads=tuple(heads), inputs=frozenset(shapes) | labels)


def _document(asked: Asked) -> tuple[Mapping[str, Any], Shape | None]:
    """Return the symbol, and the image it is usually fed."""
    model = asked.model
    if model.config:
        return model.config, None
    if model.source is not ModelSource.MXNET:
        raise invalid(
            "a symbol in a file is given inline, as `config`",
            path="model.config",
        )
    found = zoo_model(model.name, model.num_labels)
    return found.document, found.image


def _is_label(node: Node) -> bool:
    return node.is_variable and node.name.endswith("label")


def _fed(
    asked: Asked, order: Sequence[Node], image: Shape | None
) -> tuple[dict[str, Shape], dict[str, str]]:
    """Return shapes and types of what is fed, batch included.

    Raises:
        SpecError: if nothing says a shape, or a name is not an input.
    """
    known = {node.name: node for node in order if node.is_variable}
    shapes = _stated(asked, known)
    if not shapes:
        name = "data" if "data" in known else next(iter(known), "data")
        shapes = {name: (asked.input.batch_size, *_sample(asked, image))}
    types = _types(asked, known)
    if asked.precision in HALF:
        for name in shapes:
            types.setdefault(name, "float16")
    return shapes, types


def _sample(asked: Asked, image: Shape | None) -> Shape:
    """Return the shape of one sample of the main input."""
    given = asked.input
    if given.shape is not None:
        return given.shape
    if given.image_size is not None:
        return given.image_size
    if given.sequence_length is not None:
        return (given.sequence_length,)
    if image is not None:
        return image
    raise invalid(
        "the model's input has no shape",
        path="input",
        hint="give input.imageSize, input.sequenceLength, input.shape or model.options.shapes",
    )


def _stated(asked: Asked, known: Mapping[str, Node]) -> dict[str, Shape]:
    """Return the shapes of `model.options.shapes`, where 0 stands for the batch."""
    raw = _mapping(asked, "shapes")
    shapes: dict[str, Shape] = {}
    for name, sizes in raw.items():
        path = f"model.options.shapes.{name[:64]}"
        if name not in known:
            raise invalid("not an input of the symbol", path=path)
        if (
            not isinstance(sizes, list)
            or not 1 <= len(sizes) <= MAX_RANK
            or not all(type(size) is int and 0 <= size <= 1 << 40 for size in sizes)
        ):
            raise invalid(f"takes 1 to {MAX_RANK} sizes, 0 where the batch is", path=path)
        shapes[name] = tuple(size or asked.input.batch_size for size in sizes)
    return shapes


def _types(asked: Asked, known: Mapping[str, Node]) -> dict[str, str]:
    types: dict[str, str] = {}
    for name, dtype in _mapping(asked, "types").items():
        path = f"model.options.types.{name[:64]}"
        if name not in known or dtype not in ITEM_BYTES:
            raise invalid(f"takes an input and one of {', '.join(ITEM_BYTES)}", path=path)
        types[name] = str(dtype)
    return types


def _mapping(asked: Asked, key: str) -> dict[str, Any]:
    options = asked.model.options
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise invalid(
            f"not an option of MXNet models; known: {', '.join(OPTIONS)}",
            path=f"model.options.{unknown[0][:64]}",
        )
    value = options.get(key, {})
    if not isinstance(value, dict):
        raise invalid("takes a mapping of inputs", path=f"model.options.{key}")
    return value
