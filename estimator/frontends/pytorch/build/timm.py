"""Image classifiers of timm, by name.

model.name, options -> Built
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import timm
from timm.models import is_model, list_models, model_entrypoint

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build import older_timm
from estimator.frontends.pytorch.build.classification import (
    classifier,
    image_size,
    require_classification,
)
from estimator.frontends.pytorch.build.job import Built
from estimator.frontends.pytorch.build.options import checked_options, unknown_model
from estimator.frontends.pytorch.build.releases import release_of
from estimator.spec import JobSpec

DEFAULT_LABELS = 1000


def build_timm(spec: JobSpec, notebook: Notebook) -> Built:
    """Return the classifier *spec* names.

    Raises:
        UnsupportedJobError: for a name timm lacks.
        SpecError: for options the constructor does not take.
    """
    require_classification(spec)
    name = spec.model.name
    if not is_model(name):
        raise unknown_model(name, list_models(), "timm")
    num_labels = spec.model.num_labels or DEFAULT_LABELS
    options = checked_options(spec.model.options, (model_entrypoint(name), _keywords))
    options.setdefault("num_classes", num_labels)
    release = release_of(spec, notebook, "timm", installed=timm.__version__)
    with older_timm.built_as(release):
        model = _create(name, spec, options)
    default = tuple(model.default_cfg.get("input_size", (3, 224, 224)))
    size = image_size(spec, notebook, default)

    def checkpoint(_: bool | None) -> None:
        model.set_grad_checkpointing(True)

    def changes() -> AbstractContextManager[None]:
        return older_timm.run_as(release)

    switch = checkpoint if hasattr(model, "set_grad_checkpointing") else None
    return replace(classifier(spec, model, size=size, checkpoint=switch), changes=changes)


def _create(name: str, spec: JobSpec, options: dict[str, Any]) -> Any:
    """Return the model, told of another image size or channel count where it has to know."""
    size = spec.input.image_size
    if size is not None and size[0] != 3:
        options.setdefault("in_chans", size[0])
    model = timm.create_model(name, pretrained=False, **options)
    default = tuple(model.default_cfg.get("input_size", ()))
    if size is None or "img_size" in options or size[1:] == default[1:]:
        return model
    try:
        return timm.create_model(name, pretrained=False, img_size=size[1:], **options)
    except TypeError:
        return model


def _keywords(
    num_classes: int, in_chans: int, drop_rate: float, drop_path_rate: float, global_pool: str,
    img_size: int, drop_block_rate: float, patch_size: int, window_size: int, embed_dim: int,
    depth: int, num_heads: int, mlp_ratio: float, output_stride: int, attn_drop_rate: float,
    proj_drop_rate: float,
) -> None:  # fmt: skip
    """Have the signature of what timm's models take through `**kwargs`."""
