"""A reading beside the one expected, key by key.

Case (files in `tests/corpus`) -> Outcome

The expectation's schema is in `tests/corpus/README.md`. `false`: a value where none may be, or
another than the expected; `missing`: none where one is expected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from admission.detect import read_unit
from admission.manifests import Manifests, read_manifests
from admission.values import Documents, Reading, Workload
from admission.workloads import read_workload

CORPUS = Path(__file__).parents[2] / "corpus"
MAX_ROUNDS = 3
_FAMILY = {"amp-bf16": "bf16", "amp-fp16": "fp16", "tf32": "fp32"}
_DIMENSIONS = {
    "layers": ("num_hidden_layers", "n_layer"),
    "hidden": ("hidden_size", "n_embd"),
    "heads": ("num_attention_heads", "n_head"),
    "kvHeads": ("num_key_value_heads",),
    "ffn": ("intermediate_size", "n_inner"),
    "vocab": ("vocab_size",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One manifest and what should be read of it."""

    name: str
    manifests: Manifests
    expected: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was read of a case and how it differs."""

    case: Case
    workload: Workload
    reading: Reading | None
    """Of the first unit; None if it has none."""
    false: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def is_met(self) -> bool:
        """Return whether the reading is the expected one."""
        return not self.false and not self.missing


def cases(folder: Path = CORPUS) -> Iterator[Case]:
    """Yield the cases of *folder*, by name."""
    for path in sorted(folder.glob("*.expect.json")):
        stem = path.name.removesuffix(".expect.json")
        manifests = read_manifests([str(folder / f"{stem}.yaml")], stdin=StringIO())
        yield Case(name=stem, manifests=manifests, expected=json.loads(path.read_text("utf-8")))


def outcome_of(case: Case) -> Outcome:
    """Return what is read of *case* beside what is expected."""
    workload, readings = read_case(case)
    reading = next((found for found in readings if not found.skip), None) or (
        readings[0] if readings else None
    )
    false: list[str] = []
    missing: list[str] = []
    for key, expected, found in _pairs(case, workload, reading):
        if expected == found or (key == "optimizer" and _same_optimizer(expected, found)):
            continue
        (missing if found in (None, False, []) else false).append(
            f"{key}: {found!r}, expected {expected!r}"
        )
    return Outcome(
        case=case,
        workload=workload,
        reading=reading,
        false=tuple(false),
        missing=tuple(missing),
    )


def read_case(case: Case) -> tuple[Workload, tuple[Reading, ...]]:
    """Return the workload of *case* and the readings of its units, with the file's ConfigMaps."""
    wanted = case.expected["workload"]
    body = next(
        item.body for item in case.manifests.workloads if item.body["kind"] == wanted["kind"]
    )
    documents: Documents = case.manifests.documents("")
    workload = read_workload(body, documents=documents)
    return workload, tuple(
        read_unit(unit, workload=workload, documents=documents) for unit in workload.units
    )


def _pairs(
    case: Case, workload: Workload, reading: Reading | None
) -> Iterator[tuple[str, Any, Any]]:
    """Yield (key, expected, found) of everything that is compared."""
    expected = case.expected
    is_training = expected["gpu_training"]
    has_spec = reading is not None and reading.spec is not None
    if not is_training or "no job" in (expected["unknown_because"] or ""):
        skipped = bool(workload.skip) or all_skipped(workload, case)
        yield "skipped", True, skipped
        return
    yield "spec", expected["verdict_possible"], has_spec
    yield from _pods(expected["pods"], workload)
    spec = expected["spec"]
    document = _document(reading)
    found = dict(flat(document, is_whole=has_spec))
    for key, value in _expected_values(spec):
        yield key, value, found.get(key)


def all_skipped(workload: Workload, case: Case) -> bool:
    """Return whether every unit is skipped."""
    _, readings = read_case(case)
    return all(reading.skip is not None for reading in readings) and bool(readings)


def _pods(expected: Any, workload: Workload) -> Iterator[tuple[str, Any, Any]]:
    roles = {pod["role"]: pod for pod in expected if pod["gpus_per_pod"] != 0}
    units = {unit.role: unit for unit in workload.units}
    yield "roles", sorted(roles), sorted(units)
    for role, pod in roles.items():
        unit = units.get(role)
        if unit is None:
            continue
        if pod["replicas"] is not None:
            yield f"{role}.replicas", pod["replicas"], unit.replicas
        if pod["gpus_per_pod"] is not None:
            yield f"{role}.gpus", pod["gpus_per_pod"], unit.pod_gpus


def _document(reading: Reading | None) -> Mapping[str, Any]:
    if reading is None:
        return {}
    return reading.partial


def _expected_values(spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in spec.items():
        if key == "model" and isinstance(value, Mapping):
            for part, number in value.items():
                yield f"model.{part}", number
        elif key == "adapter":
            yield "adapter", value["type"] if value else None
            yield "adapter.rank", value["rank"] if value else None
        elif key == "parallelism":
            for part, number in value.items():
                yield part, number
        else:
            yield key, value


def flat(document: Mapping[str, Any], *, is_whole: bool) -> Iterator[tuple[str, Any]]:
    """Yield the expectation's keys and their values in a spec *document*; absent ones are left."""

    def at(path: str) -> Any:
        part: Any = document
        for key in path.split("."):
            part = part.get(key) if isinstance(part, Mapping) else None
        return part

    yield "framework", at("framework")
    yield "model", at("model.name")
    config = at("model.config") or {}
    for part, keys in _DIMENSIONS.items():
        yield f"model.{part}", next((config[key] for key in keys if key in config), None)
    yield "batchSize", at("input.batchSize")
    yield "sequenceLength", at("input.sequenceLength")
    size = at("input.imageSize")
    yield "imageSize", size[-1] if size else None
    precision = at("training.precision")
    yield "precision", _FAMILY.get(precision, precision)
    yield "optimizer", at("training.optimizer")
    checkpointing = at("training.gradientCheckpointing")
    mode = checkpointing.get("mode") if isinstance(checkpointing, Mapping) else checkpointing
    yield "gradientCheckpointing", None if mode is None else mode != "none"
    adapter, bits = at("adapter.type"), at("quantization.bits")
    yield "adapter", "qlora" if adapter == "lora" and bits == 4 else adapter
    yield "adapter.rank", at("adapter.rank")
    yield "quantization", f"{bits}bit" if bits else None
    yield "gradientAccumulationSteps", at("training.gradientAccumulationSteps")
    yield from _parallelism(at("parallelism") or {}, is_whole=is_whole)


def _parallelism(part: Mapping[str, Any], *, is_whole: bool) -> Iterator[tuple[str, Any]]:
    strategy = part.get("strategy")
    # Absent degrees are 1 by the contract; of a job that is not known whole they are not told.
    is_told = "dataParallel" in part or strategy == "none"
    default = 1 if part and (is_whole or is_told) else None
    degrees = {name: part.get(f"{name}Parallel", default) for name in _DEGREES}
    is_split = any((degrees[name] or 1) > 1 for name in _DEGREES)
    yield "strategy", "tp_pp" if is_split else None if strategy == "none" else strategy
    yield "dataParallel", part.get("dataParallel", 1 if strategy == "none" else None)
    for name, degree in degrees.items():
        yield f"{name}Parallel", degree


_DEGREES = ("tensor", "pipeline", "context")


def _same_optimizer(expected: Any, found: Any) -> bool:
    """Return whether the spec's optimizer is the one written as *expected*."""
    if expected is None or not isinstance(found, Mapping):
        return False
    name, bits = found.get("name"), found.get("bits", 32)
    written = str(expected).lower()
    if written == "momentum":
        return name == "sgd" and bool(found.get("momentum"))
    base = next((word for word in ("adamw", "adam", "sgd", "lion") if word in written), written)
    return name == base and (bits == 8) == ("8bit" in written)
