"""The three jobs of docs/reserved.md.

example manifest, measured cases -> Jobs
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admission.detect.reading import read_unit
from admission.manifests import read_manifests
from admission.workloads import read_workload
from tests.bench.accuracy.cases import Case, read_cases
from tests.bench.accuracy.fitted import fitted_ids, read_rules

EXAMPLES = Path(__file__).parents[3] / "deploy" / "examples"
CARD = "a100-sxm4-40gb"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job on a card, what to know of it, and its public reading if it has one."""

    title: str
    sentences: tuple[str, ...]
    spec: Mapping[str, Any]
    gpu: str
    case: Case | None = None
    is_fitted: bool = False
    """A rule or constant of the estimator was chosen by this reading."""


def jobs() -> tuple[Job, ...]:
    """Return a small-kernel network, one of large workspaces, and a language model."""
    every = read_cases()
    fitted = fitted_ids(read_rules(), every)
    cases = {case.id: case for case in every}
    vgg16, bert = cases["gpumemnet/vgg16-b128"], cases["gpumemnet/bert-base-b32"]
    return (
        Job(
            title="ResNet-50, 256 images",
            sentences=(
                "fp32, SGD with momentum: the job of `deploy/examples/resnet50-b256-fp32.yaml`, "
                "as the webhook reads it, on an A100 instead of its T4.",
                "No reading of this job has been published.",
            ),
            spec=example_spec("resnet50-b256-fp32.yaml"),
            gpu=CARD,
        ),
        Job(
            title="VGG-16, 128 images",
            sentences=(
                f"fp32, Adam: `{vgg16.id}` of the accuracy bench.",
                "Its convolutions are few and wide, and cuDNN's fastest plans for them want "
                "workspaces larger than their tensors.",
            ),
            spec=vgg16.spec,
            gpu=vgg16.gpu,
            case=vgg16,
            is_fitted=vgg16.id in fitted,
        ),
        Job(
            title="BERT base, 32 sequences of 512",
            sentences=(
                f"fp32, AdamW, masked words: `{bert.id}` of the accuracy bench.",
                "No convolutions: almost all of it is activations, and the scores of every word "
                "of the vocabulary at every position.",
            ),
            spec=bert.spec,
            gpu=bert.gpu,
            case=bert,
            is_fitted=bert.id in fitted,
        ),
    )


def example_spec(name: str) -> Mapping[str, Any]:
    """Return the JobSpec the webhook reads from the one unit of an example manifest."""
    manifests = read_manifests([str(EXAMPLES / name)], stdin=sys.stdin)
    (manifest,) = manifests.workloads
    workload = read_workload(manifest.body)
    (unit,) = workload.units
    spec = read_unit(unit, workload=workload).spec
    assert spec is not None
    return spec.document()
