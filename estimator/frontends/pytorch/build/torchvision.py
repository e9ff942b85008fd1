"""Models of torchvision, by name.

model.name, options -> Built
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torchvision.models as zoo
from torch import nn

from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build import dense, detection
from estimator.frontends.pytorch.build.classification import classifier, image_size
from estimator.frontends.pytorch.build.job import Built
from estimator.frontends.pytorch.build.options import checked_options, unknown_model
from estimator.notes import UnknownCode
from estimator.spec import JobSpec, Task

DEFAULT_SIZE = 224
SIZES = {"inception_v3": 299}
"""Models whose own size the name does not tell and the weights' recipe may not match."""

SIZED: dict[str, Callable[[tuple[int, int, int]], tuple[str, Any]]] = {
    **{
        name: lambda size: ("image_size", size[1])
        for name in ("vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14")
    },
    "maxvit_t": lambda size: ("input_size", size[1:]),
}
"""Models that are built for one image size, and the keyword that tells it."""

Maker = Callable[[JobSpec, nn.Module, Notebook], Built]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One folder of the zoo: its models, their task, and what they are built with."""

    module: ModuleType
    tasks: tuple[Task, ...]
    """The words that may name it. Empty: the contract has none, and the model's name says it."""
    make: Maker
    num_labels: int | None
    """Of the weights the zoo publishes; None: the constructor takes no number."""
    backbone: bool = False
    """The constructor loads weights of a backbone unless it is told not to."""


def _classifier(spec: JobSpec, model: nn.Module, notebook: Notebook) -> Built:
    edge = SIZES.get(spec.model.name, DEFAULT_SIZE)
    return classifier(spec, model, size=image_size(spec, notebook, (3, edge, edge)))


FAMILIES = (
    Family(
        module=zoo,
        tasks=(Task.IMAGE_CLASSIFICATION, Task.FEATURE_EXTRACTION),
        make=_classifier,
        num_labels=1000,
    ),
    Family(
        module=zoo.detection,
        tasks=(Task.OBJECT_DETECTION,),
        make=detection.detector,
        num_labels=91,
        backbone=True,
    ),
    Family(
        module=zoo.segmentation,
        tasks=(Task.SEMANTIC_SEGMENTATION,),
        make=dense.segmenter,
        num_labels=21,
        backbone=True,
    ),
    Family(
        module=zoo.video,
        tasks=(Task.VIDEO_CLASSIFICATION,),
        make=dense.video_classifier,
        num_labels=400,
    ),
    Family(module=zoo.optical_flow, tasks=(), make=dense.flow, num_labels=None),
)
"""Every folder but `quantization`: its models are for inference on a CPU."""


def build_torchvision(spec: JobSpec, notebook: Notebook) -> Built:
    """Return the model *spec* names.

    Raises:
        UnsupportedJobError: for a name torchvision lacks, or another task than the model's.
        SpecError: for options the constructor does not take.
    """
    name = spec.model.name
    family = _family(name)
    if spec.model.task is not None and spec.model.task not in family.tasks:
        known = ", ".join(family.tasks) or "none; leave it out"
        raise UnsupportedJobError(
            f"model.task: '{spec.model.task}' is not modelled for '{name}'; known: {known}",
            code=UnknownCode.TASK,
            path="model.task",
        )
    constructor = zoo.get_model_builder(name)
    options = checked_options(spec.model.options, (constructor, *_class_of(constructor)))
    if family.num_labels is not None:
        num_labels = spec.model.num_labels or options.pop("num_classes", family.num_labels)
        options["num_classes"] = num_labels
    if family.backbone:
        options["weights_backbone"] = None
    if spec.input.image_size is not None and name in SIZED:
        options.setdefault(*SIZED[name](spec.input.image_size))
    if name in ("googlenet", "inception_v3"):
        options.setdefault("init_weights", False)
    return family.make(spec, constructor(weights=None, **options), notebook)


def _family(name: str) -> Family:
    """Return the folder that has *name*.

    Raises:
        UnsupportedJobError: if none has, with close matches of all.
    """
    names: list[str] = []
    for family in FAMILIES:
        found = zoo.list_models(module=family.module)
        if name in found:
            return family
        names += found
    if name in zoo.list_models(module=zoo.quantization):
        raise UnsupportedJobError(
            f"model.name: '{name}' is quantised, for inference on a CPU: it takes no GPU memory",
            code=UnknownCode.MODEL,
            path="model.name",
        )
    raise unknown_model(name, names, "torchvision")


def _class_of(constructor: Any) -> tuple[Any, ...]:
    """Return the model class *constructor* hands its keywords to."""
    returned = constructor.__annotations__.get("return")
    if isinstance(returned, str):
        returned = constructor.__globals__.get(returned)
    if not isinstance(returned, type):
        returned = getattr(constructor, "__wrapped__", constructor).__annotations__.get("return")
    return (returned,) if isinstance(returned, type) else ()
