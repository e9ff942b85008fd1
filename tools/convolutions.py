"""Which convolutions the shipped tables of plans answer, and for which cards.

    example jobs, bench cases, popular networks -> cards with Questions

Every job is traced as an estimate traces it. Imports PyTorch, and with it a cuDNN: never in a
process that loads another one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from admission.detect import read_unit
from admission.manifests import read_manifests
from admission.workloads import read_workload
from estimator.catalog import resolve_device
from estimator.catalog.cudnn_devices import cudnn_device
from estimator.catalog.stacks import stack_of
from estimator.cudnn import Card, Question, card_of
from estimator.device import ComputeCapability
from estimator.errors import EstimatorError
from estimator.frontends import Frontend, load
from estimator.frugal import frugal_spec
from estimator.kernels import questions_in
from estimator.kernels.asked import V8_SINCE
from estimator.spec import JobSpec, parse_spec
from estimator.traits import Traits

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "deploy" / "examples"
CASES = ROOT / "tests" / "bench" / "data" / "cases.jsonl"

CAPABILITIES: tuple[ComputeCapability, ...] = ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0))
"""Architectures that get a table: all that cuDNN 9.10.2 has answers for."""
NETWORKS = (
    "resnet18",
    "resnet50",
    "resnet101",
    "vgg16",
    "densenet121",
    "efficientnet_b0",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "convnext_tiny",
)
"""Of torchvision, at 224 x 224."""
BATCHES = (32, 64, 128, 256)
RUNS = (
    ("fp32", "contiguous"),
    ("amp-fp16", "contiguous"),
    ("amp-fp16", "channels_last"),
    ("amp-bf16", "contiguous"),
    ("amp-bf16", "channels_last"),
)
TRAITS = Traits(flash_attention=True, efficient_attention=True, native_bf16=True)
"""Convolutions are the same with others."""

Asked = dict[Card, dict[Question, None]]
"""Questions by card, each once, in a fixed order."""


def asked() -> Asked:
    """Return every question of every table."""
    frontend = load("pytorch")
    cards = [_card(capability) for capability in CAPABILITIES]
    found: Asked = {card: {} for card in cards}
    for spec in (*example_specs(), *network_specs()):
        questions = dict.fromkeys(questions_of(spec, frontend))
        for card in cards:
            found[card] |= questions
    for spec, own in bench_specs():
        if own in found:
            found[own] |= dict.fromkeys(questions_of(spec, frontend))
    return found


def questions_of(spec: JobSpec, frontend: Frontend) -> Iterator[Question]:
    """Yield what an estimate of *spec* asks; nothing if it cannot be traced."""
    for job in (spec, frugal_spec(spec)):
        if job is None:
            continue
        try:
            yield from questions_in(frontend.trace_job(job, traits=TRAITS))
        except EstimatorError as error:
            print(f"left out: {error.message[:100]}", file=sys.stderr)


def example_specs() -> Iterator[JobSpec]:
    """Yield the jobs of deploy/examples, read as the webhook reads them."""
    manifests = read_manifests([str(EXAMPLES)], stdin=sys.stdin)
    for manifest in manifests.workloads:
        workload = read_workload(manifest.body)
        readings = [read_unit(unit, workload=workload) for unit in workload.units]
        yield from (reading.spec for reading in readings if reading.spec is not None)


def bench_specs() -> Iterator[tuple[JobSpec, Card | None]]:
    """Yield the bench's jobs with a PyTorch that asks for plans, and each one's own card."""
    for line in CASES.read_bytes().splitlines():
        case = orjson.loads(line)
        try:
            spec = parse_spec(case["spec"])
        except EstimatorError:
            continue
        stack = stack_of(spec.framework_version)
        if spec.framework == "pytorch" and (stack is None or stack.torch >= V8_SINCE):
            yield spec, card_of(resolve_device(case["gpu"]))


def network_specs() -> Iterator[JobSpec]:
    """Yield the popular networks at every batch, dtype and order of memory."""
    for name in NETWORKS:
        for batch in BATCHES:
            for precision, order in RUNS:
                yield parse_spec(_network(name, batch, precision, order))


def _network(name: str, batch: int, precision: str, order: str) -> dict[str, Any]:
    return {
        "framework": "pytorch",
        "model": {"source": "torchvision", "name": name},
        "input": {"batchSize": batch, "imageSize": [3, 224, 224]},
        "training": {"precision": precision, "optimizer": {"name": "sgd", "momentum": 0.9}},
        "runtime": {"memoryFormat": order},
    }


def _card(capability: ComputeCapability) -> Card:
    known = cudnn_device(capability)
    assert known is not None, capability
    return Card(compute_capability=capability, multiprocessors=known.multiprocessors)
