"""Image classifiers of torchvision, by name.

model.name, options -> Built
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchvision
from torch import nn

from estimator.errors import UnsupportedJobError
from estimator.frontends.pytorch.build.classification import (
    classifier,
    image_size,
    require_classification,
)
from estimator.frontends.pytorch.build.job import Built
from estimator.frontends.pytorch.build.options import checked_options, unknown_model
from estimator.frontends.pytorch.notebook import Notebook
from estimator.notes import UnknownCode
from estimator.spec import JobSpec

DEFAULT_SIZE = 224
SIZES = {"inception_v3": 299}
"""Models whose own size the name does not tell and the weights' recipe may not match."""
DEFAULT_LABELS = 1000
SIZED: dict[str, Callable[[tuple[int, int, int]], tuple[str, Any]]] = {
    **{
        name: lambda size: ("image_size", size[1])
        for name in ("vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14")
    },
    "maxvit_t": lambda size: ("input_size", size[1:]),
}
"""Models that are built for one image size, and the keyword that tells it."""


def build_torchvision(spec: JobSpec, notebook: Notebook) -> Built:
    """Return the classifier *spec* names.

    Raises:
        UnsupportedJobError: for a name torchvision lacks, or that is no classifier.
        SpecError: for options the constructor does not take.
    """
    require_classification(spec)
    name = spec.model.name
    names = torchvision.models.list_models(module=torchvision.models)
    if name not in names:
        if name in torchvision.models.list_models():
            raise UnsupportedJobError(
                f"model.name: '{name}' is no classifier; detection, segmentation, flow and video "
                "models of torchvision are not modelled",
                code=UnknownCode.TASK,
                path="model.name",
            )
        raise unknown_model(name, names, "torchvision")
    constructor = torchvision.models.get_model_builder(name)
    given = spec.model.options
    options = checked_options(given, (constructor, *_class_of(constructor)))
    num_labels = spec.model.num_labels or options.pop("num_classes", DEFAULT_LABELS)
    if spec.input.image_size is not None and name in SIZED:
        options.setdefault(*SIZED[name](spec.input.image_size))
    if name in ("googlenet", "inception_v3"):
        options.setdefault("init_weights", False)
    model: nn.Module = constructor(weights=None, num_classes=num_labels, **options)
    edge = SIZES.get(name, DEFAULT_SIZE)
    size = image_size(spec, notebook, (3, edge, edge))
    return classifier(spec, model, size=size)


def _class_of(constructor: Any) -> tuple[Any, ...]:
    """Return the model class *constructor* hands its keywords to."""
    returned = constructor.__annotations__.get("return")
    if isinstance(returned, str):
        returned = constructor.__globals__.get(returned)
    if not isinstance(returned, type):
        returned = getattr(constructor, "__wrapped__", constructor).__annotations__.get("return")
    return (returned,) if isinstance(returned, type) else ()
