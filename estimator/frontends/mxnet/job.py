"""What a spec trains: a graph with every shape known, and how it is run.

JobSpec -> Job
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from estimator.frontends.mxnet.common_expressions import eliminated
from estimator.frontends.mxnet.errors import invalid, unsupported
from estimator.frontends.mxnet.graph import ITEM_BYTES, VARIABLE, Entry, Node, Shape, in_order
from estimator.frontends.mxnet.inference import infer
from estimator.frontends.mxnet.operators.losses import LOSSES
from estimator.frontends.mxnet.symbol import call, read_symbol
from estimator.frontends.mxnet.versions import Release
from estimator.frontends.mxnet.zoo import zoo_model
from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobPhase, JobSpec, ModelSource, Precision

OPTIONS = ("shapes", "types")
MAX_RANK = 8
LABEL = "softmax_label"
MATRIX = 2
HALF = (Precision.FP16,)
WORDS = {"module": "whole", "default": "whole", "static": "static", "hybridize": "hybrid"}


class Execution(Enum):
    """How a graph is run."""

    WHOLE = "whole"
    """Module or `simple_bind`: one plan for forward and backward."""
    STATIC = "static"
    """`hybridize(static_alloc=True)`: a plan each, kept."""
    HYBRID = "hybrid"
    """`hybridize()`: a plan each, made anew every step."""
    IMPERATIVE = "imperative"
    """Operator by operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A graph ready to be bound."""

    heads: list[Entry]
    inputs: frozenset[str]
    """Names of what is fed: data and labels."""
    execution: Execution
    takes_loss: bool
    """Whether the loop computes a loss of what the graph computes."""


def job_of(spec: JobSpec, release: Release, notebook: Notebook) -> Job:
    """Return the job of *spec*.

    Raises:
        SpecError: if the model or its shapes are not valid.
        UnsupportedJobError: if an operator or a part of the job is not modelled.
    """
    document, image = _document(spec)
    heads = read_symbol(document, has_onednn=release.has_onednn)
    execution = execution_of(spec, notebook)
    is_trained = spec.phase is JobPhase.TRAIN
    shapes, types = _fed(spec, heads, image)
    if release.merges_common:
        heads = eliminated(heads)
    infer(in_order(heads), shapes, types)
    has_loss = all(head.node.operator in LOSSES for head in heads)
    takes_loss = is_trained and not has_loss and len(heads) == 1 and len(heads[0].shape) > 1
    if takes_loss and execution is Execution.WHOLE and len(heads[0].shape) == MATRIX:
        heads, takes_loss = [_with_loss(heads[0])], False
    order = in_order(heads)
    inputs = set(shapes) | {node.name for node in order if _is_label(node)}
    return Job(
        heads=heads,
        inputs=frozenset(inputs),
        execution=execution,
        takes_loss=takes_loss and execution is not Execution.WHOLE,
    )


def execution_of(spec: JobSpec, notebook: Notebook) -> Execution:
    """Return how the job runs its graph: imperatively unless `training.compile` says otherwise.

    Raises:
        UnsupportedJobError: for a mode that is not MXNet's.
    """
    compile_ = spec.training.compile
    if not compile_.enabled:
        if "compile" not in spec.training.model_fields_set:
            notebook.assume(
                AssumptionCode.COMPILE,
                "training.compile",
                "false",
                "absent: Gluon, operator by operator; `hybridize()` and Module need less",
            )
        return Execution.IMPERATIVE
    word = WORDS.get(compile_.mode)
    if word is None:
        raise unsupported(
            f"'{compile_.mode}' is not a way MXNet runs a graph; known: {', '.join(WORDS)}",
            code=UnknownCode.FEATURE,
            path="training.compile.mode",
        )
    return Execution(word)


def _document(spec: JobSpec) -> tuple[Mapping[str, Any], Shape | None]:
    """Return the symbol of a spec and the image it is usually fed."""
    model = spec.model
    if model.config:
        return model.config, None
    if model.source is not ModelSource.MXNET:
        raise invalid(
            "a symbol in a file is given inline, as `config`",
            path="model.config",
        )
    found = zoo_model(model.name, model.num_labels)
    return found.document, found.image


def _with_loss(head: Entry) -> Entry:
    """Return a softmax over a head of two dimensions, as `Module` examples add it.

    A symbol with several heads, or with more dimensions, keeps its own: its gradients then come
    from outside.
    """
    label = Node(VARIABLE, LABEL)
    softmax = call("SoftmaxOutput", "softmax", {}, [head, Entry(label, 0)])
    infer([label, softmax], {}, {})
    return Entry(softmax, 0)


def _is_label(node: Node) -> bool:
    return node.is_variable and node.name.endswith("label")


def _fed(
    spec: JobSpec, heads: list[Entry], image: Shape | None
) -> tuple[dict[str, Shape], dict[str, str]]:
    """Return shapes and types of what is fed, batch included.

    Raises:
        SpecError: if nothing says a shape, or a name is not an input.
    """
    known = {node.name: node for node in in_order(heads) if node.is_variable}
    shapes = _stated(spec, known)
    if not shapes:
        name = "data" if "data" in known else next(iter(known), "data")
        shapes = {name: (spec.input.batch_size, *_sample(spec, image))}
    types = _types(spec, known)
    if spec.training.precision in HALF:
        for name in shapes:
            types.setdefault(name, "float16")
    return shapes, types


def _sample(spec: JobSpec, image: Shape | None) -> Shape:
    """Return the shape of one sample of the main input."""
    given = spec.input
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


def _stated(spec: JobSpec, known: Mapping[str, Node]) -> dict[str, Shape]:
    """Return the shapes of `model.options.shapes`, where 0 stands for the batch."""
    raw = _mapping(spec, "shapes")
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
        shapes[name] = tuple(size or spec.input.batch_size for size in sizes)
    return shapes


def _types(spec: JobSpec, known: Mapping[str, Node]) -> dict[str, str]:
    types: dict[str, str] = {}
    for name, dtype in _mapping(spec, "types").items():
        path = f"model.options.types.{name[:64]}"
        if name not in known or dtype not in ITEM_BYTES:
            raise invalid(f"takes an input and one of {', '.join(ITEM_BYTES)}", path=path)
        types[name] = str(dtype)
    return types


def _mapping(spec: JobSpec, key: str) -> dict[str, Any]:
    options = spec.model.options
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
