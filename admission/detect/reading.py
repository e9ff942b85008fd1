"""One unit, read: what was found, the owner's word over it, and what is still open.

    Unit, Workload, documents -> Reading

Pure. Never guesses: a value that is needed and not certain is a finding with its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from admission.codes import ReasonCode
from admission.detect.annotation import (
    Annotation,
    conflicts,
    json_types,
    merged,
    read_annotation,
    replaced_parts,
)
from admission.detect.budget import budget_for
from admission.detect.commands import commands_of
from admission.detect.container import read_container
from admission.detect.draft import Draft, is_stated, value_at
from admission.detect.programs import HINT, read_programs
from admission.values import Finding, Reading, Unit, Workload
from admission.workloads.fields import is_template
from admission.workloads.resources import (
    CLAIM,
    declarations,
    gpu_claims,
    gpu_request,
    is_gpu,
)
from admission.workloads.units import MAX_UNITS
from estimator.errors import SpecError
from estimator.spec import JobSpec, parse_spec

NO_DOCUMENTS: Mapping[str, str] = MappingProxyType({})
_PYTORCH_SOURCES = ("torchvision", "timm", "huggingface", "diffusers")
MAX_PROBLEMS = 50
"""More of one document help nobody."""
_PLACEHOLDERS: tuple[tuple[str, object], ...] = (
    ("framework", "pytorch"),
    ("model.source", "torchvision"),
    ("model.name", "unknown"),
    ("input.batchSize", 1),
)
"""Stand in for what is missing while the rest is checked."""


def read_unit(
    unit: Unit, *, workload: Workload, documents: Mapping[str, str] = NO_DOCUMENTS
) -> Reading:
    """Return what was understood of *unit* of *workload*.

    *documents* are ConfigMap values as `configmap/NAME/KEY`.

    Raises:
        RequestError: if a field of the container or an annotation has the wrong type.
    """
    if len(workload.units) > MAX_UNITS and unit not in workload.units[:MAX_UNITS]:
        return Reading(unknowns=(_too_many(unit),))
    budget = budget_for(len(workload.units))
    container = read_container(unit, budget, documents=documents)
    annotation = read_annotation(unit, workload, limit=budget.annotation)
    draft = read_programs(
        container, commands_of(container, budget), unit, workload, given=annotation.document
    )
    is_silent = not annotation.document and not annotation.problems
    if is_silent and (draft is None or draft.is_idle):
        return Reading(skip=ReasonCode.NO_TRAINING, warnings=tuple(draft.warnings) if draft else ())
    draft = draft or Draft()
    document, sources = _merge(draft, annotation)
    doubts = tuple(_doubts(draft, annotation))
    warnings = (*_request_warnings(unit), *draft.warnings, *doubts, *conflicts(annotation, draft))
    spec, invalid = _check(document, annotation, unit)
    unknowns = (
        *annotation.problems,
        *invalid,
        *_open(draft, annotation),
        *_missing(document, draft, unit),
        *_budget(unit),
    )
    if annotation.reference is not None and unknowns:
        unknowns = (*unknowns, annotation.reference)
    elif annotation.reference is not None:
        warnings = (*warnings, f"{annotation.reference.path}: {annotation.reference.reason}")
    return Reading(
        spec=None if unknowns else spec,
        sources=sources,
        unknowns=_distinct(unknowns),
        warnings=warnings,
        partial=json_types(document),
        is_certain=not doubts,
    )


def _too_many(unit: Unit) -> Finding:
    return Finding(
        code=ReasonCode.UNSUPPORTED,
        path=unit.container_path,
        reason=f"more than {MAX_UNITS} GPU containers in one workload; the rest is not read",
    )


def _doubts(draft: Draft, annotation: Annotation) -> Iterator[str]:
    """Yield the doubts that the owner's word does not settle."""
    for doubt in draft.doubts:
        stated = (is_stated(annotation.document, path) for path in doubt.settled_by)
        if not doubt.settled_by or not all(stated):
            yield doubt.reason


def _merge(draft: Draft, annotation: Annotation) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the document and its sources with the owner's word over what was found."""
    document = merged(draft.document, annotation.document)
    stated = annotation.document
    whole = replaced_parts(stated)
    sources = {
        path: source
        for path, source in draft.sources.items()
        if path.partition(".")[0] not in whole and value_at(document, path) is not None
    }
    sources.update(annotation.sources)
    if "framework" not in document and value_at(document, "model.source") in _PYTORCH_SOURCES:
        document["framework"] = "pytorch"
        sources["framework"] = "the zoo in model.source"
    return document, sources


def _check(
    document: Mapping[str, Any], annotation: Annotation, unit: Unit
) -> tuple[JobSpec | None, tuple[Finding, ...]]:
    """Return the spec, or every problem of *document*; what is missing is reported elsewhere."""
    complete = dict(document)
    for path, value in _PLACEHOLDERS:
        part, _, key = path.partition(".")
        if not key:
            complete.setdefault(part, value)
        elif isinstance(complete.get(part, {}), Mapping):
            complete[part] = {key: value, **complete.get(part, {})}
    try:
        return parse_spec(complete), ()
    except SpecError as error:
        return None, tuple(
            Finding(
                code=ReasonCode.INVALID_SPEC,
                path=_place(problem.path, annotation, unit),
                reason=f"{problem.path}: {problem.message}" if problem.path else problem.message,
            )
            for problem in error.problems[:MAX_PROBLEMS]
        )


def _place(path: str, annotation: Annotation, unit: Unit) -> str:
    """Return the field path that states the value at spec *path*, or one above it or below."""
    parts = path.replace("[", ".").split(".")
    for length in range(len(parts), 0, -1):
        where = annotation.sources.get(".".join(parts[:length]))
        if where is not None:
            return where
    below = (w for name, w in annotation.sources.items() if name.startswith(f"{path}."))
    return next(below, unit.container_path)


def _open(draft: Draft, annotation: Annotation) -> Iterator[Finding]:
    """Yield the gaps that the owner's word does not close."""
    for gap in draft.gaps:
        stated = (is_stated(annotation.document, path) for path in gap.closed_by)
        if not gap.closed_by or not all(stated):
            yield gap.finding


def _missing(document: Mapping[str, Any], draft: Draft, unit: Unit) -> Iterator[Finding]:
    """Yield findings for a model or batch that is missing and that no gap explains."""
    explained = {path for gap in draft.gaps for path in gap.closed_by}
    for path, code, what in (
        ("model.name", ReasonCode.NO_MODEL, "model"),
        ("input.batchSize", ReasonCode.NO_BATCH, "batch size"),
        ("framework", ReasonCode.INVALID_SPEC, "framework"),
    ):
        if value_at(document, path) is None and path not in explained:
            if path == "framework" and value_at(document, "model.name") is None:
                continue
            yield Finding(
                code=code, path=unit.container_path, reason=f"no {what} is given", hint=HINT
            )


def _budget(unit: Unit) -> Iterator[Finding]:
    """Yield what makes it impossible to say how much memory the container gets."""
    resources = unit.container_spec.get("resources") or {}
    key = "limits" if resources.get("limits") else "requests"
    path = f"{unit.container_path}.resources"
    for name, value in (resources.get(key) or {}).items():
        if is_gpu(name) and is_template(value):
            yield Finding(
                code=ReasonCode.TEMPLATE,
                path=f"{path}.{key}[{name}]",
                reason=f"the number of GPUs {value:.60} is not resolved",
                hint="render the template before it is applied",
            )
    names = declarations(unit.container_spec)
    if names:
        yield Finding(
            code=ReasonCode.UNSUPPORTED,
            path=path,
            reason=f"{', '.join(names)}: a declared share of a card is not read yet",
        )
    elif unit.gpu_resource == CLAIM:
        yield Finding(
            code=ReasonCode.UNSUPPORTED,
            path=f"{path}.claims",
            reason="a device asked for by a DRA claim is not read yet",
            hint=f"ask for the GPU by the resource nvidia.com/gpu: {unit.gpus}",
        )
    elif not is_gpu(unit.gpu_resource):
        yield Finding(
            code=ReasonCode.UNSUPPORTED,
            path=path,
            reason=f"{unit.gpu_resource} is not modelled; NVIDIA GPUs are",
        )


def _request_warnings(unit: Unit) -> Iterator[str]:
    """Yield a warning for GPUs in requests without limits: the API server refuses such pods."""
    claims = gpu_claims(unit.pod, "spec")
    request = gpu_request(unit.container_spec, unit.container_path, claims=claims)
    if request is not None and not request.limited and request.resource != CLAIM:
        yield (
            f"{unit.container_path}.resources: {request.resource} is in requests without limits; "
            "the API server refuses such pods"
        )


def _distinct(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(findings))
