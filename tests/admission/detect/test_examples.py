"""The manifests of deploy/examples are read as their first line says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from admission.codes import ReasonCode
from admission.detect import read_unit
from admission.workloads import read_workload
from tests.admission.detect.jobs import codes, found

EXAMPLES = Path(__file__).parents[3] / "deploy" / "examples"
READ = {
    "resnet50-b256-fp32": ("torchvision", "resnet50", 256, "fp32", "none"),
    "resnet50-b64": ("torchvision", "resnet50", 64, "fp32", "none"),
    "bert-base-finetune": ("huggingface", "google-bert/bert-base-uncased", 32, "amp-fp16", "none"),
    "llama3-8b-full": ("huggingface", "meta-llama/Meta-Llama-3-8B", 1, "bf16", "ddp"),
    "timm-convnext": ("timm", "convnext_base", 128, "amp-bf16", "ddp"),
    "annotated-vit": ("torchvision", "vit_b_16", 64, "amp-bf16", None),
}
PATHS = (
    "model.source",
    "model.name",
    "input.batchSize",
    "training.precision",
    "parallelism.strategy",
)


@pytest.mark.parametrize("name", READ)
def test_examples_that_are_read(name: str) -> None:
    """Every unit of the example gives the same spec."""
    workload = read_workload(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()))

    assert workload.units
    for unit in workload.units:
        reading = read_unit(unit, workload=workload)
        assert reading.spec is not None
        assert reading.warnings == ()
        assert found(reading, *PATHS) == dict(zip(PATHS, READ[name], strict=True))


def test_examples_that_are_not_read() -> None:
    """Unknown, no GPU and no training are told apart."""
    readings = {}
    for name in ("unknown-image-only", "smoke-nvidia-smi"):
        workload = read_workload(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()))
        readings[name] = read_unit(workload.units[0], workload=workload)
    no_gpu = read_workload(yaml.safe_load((EXAMPLES / "no-gpu.yaml").read_text()))

    assert codes(readings["unknown-image-only"]) == [ReasonCode.NO_COMMAND]
    assert readings["smoke-nvidia-smi"].skip is ReasonCode.NO_TRAINING
    assert no_gpu.skip is ReasonCode.NO_GPU


def test_every_example_has_one_comment_line_and_a_test() -> None:
    """A new example is added here too."""
    names = {path.stem for path in EXAMPLES.glob("*.yaml")}

    assert names == {*READ, "unknown-image-only", "smoke-nvidia-smi", "no-gpu", "nodes"}
    for path in EXAMPLES.glob("*.yaml"):
        first, second = path.read_text().splitlines()[:2]
        assert first.startswith("# ")
        assert not second.startswith("#")
