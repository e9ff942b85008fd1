"""One unit, read: what was found, the owner's word over it, and what is still open.

    Unit, Workload, documents -> Reading

Pure. Never guesses: a value that is needed and not certain is a finding with its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

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
from admission.detect.completion import complete_model
from admission.detect.container import read_container
from admission.detect.draft import Draft, is_stated, value_at
from admission.detect.files import Files
from admission.detect.launchers import load_launchers
from admission.detect.lookup import Lookup
from admission.detect.programs import HINT, read_programs
from admission.detect.scripts import load_families
from admission.values import NO_DOCUMENTS, Documents, Finding, Reading, Unit, Workload
from admission.workloads import load_kinds
from admission.workloads.claims import gpu_claims
from admission.workloads.fields import is_unrendered
from admission.workloads.resources import CLAIM, gpu_request, is_gpu
from admission.workloads.shares import SHARED_RESOURCES
from admission.workloads.units import MAX_UNITS
from estimator.deferred import Deferred, load
from estimator.errors import Problem, SpecError

if TYPE_CHECKING:
    from admission.detect import model_files, recorded, shell
    from admission.detect.scripts import seen
    from estimator import spec as specs
    from estimator.spec import JobSpec
else:
    model_files = Deferred("admission.detect.model_files")
    specs = Deferred("estimator.spec")
    recorded = Deferred("admission.detect.recorded")
    seen = Deferred("admission.detect.scripts.seen")
    shell = Deferred("admission.detect.shell")

_PYTORCH_SOURCES = ("torchvision", "timm", "huggingface", "diffusers", "ultralytics")
_ASKED = (
    ReasonCode.NO_MODEL,
    ReasonCode.NO_BATCH,
    ReasonCode.NO_COMMAND,
    ReasonCode.UNRESOLVED_VARIABLE,
)
"""What a script, a variable or a file of a ConfigMap would answer."""
MAX_PROBLEMS = 50
"""More of one document help nobody."""
_PLACEHOLDERS: tuple[tuple[str, object], ...] = (
    ("framework", "pytorch"),
    ("model.source", "torchvision"),
    ("model.name", "unknown"),
    ("input.batchSize", 1),
)
"""Stand in for what is missing while the rest is checked."""
_NO_TRACE = (
    "'trace' is not accepted: refer to a Trace file with the annotation vramgate.dev/spec-ref"
)
_CLAIM_HINT = "`vramgate explain` reads a ResourceClaimTemplate from a file beside the job"


def read_unit(unit: Unit, *, workload: Workload, documents: Documents = NO_DOCUMENTS) -> Reading:
    """Return what was understood of *unit* of *workload*, with the *documents* fetched so far.

    Raises:
        RequestError: if a field of the container or an annotation has the wrong type.
    """
    if len(workload.units) > MAX_UNITS and unit not in workload.units[:MAX_UNITS]:
        return Reading(unknowns=(_too_many(unit),))
    budget = budget_for(len(workload.units))
    lookup = Lookup(documents, characters=budget.models)
    if unit.share is not None and unit.share.wanted:
        lookup.find(unit.share.wanted)
    container = read_container(unit, budget, lookup)
    annotation = read_annotation(unit, workload, lookup, limit=budget.annotation)
    if annotation.content:
        return replace(recorded.recorded_reading(annotation, unit), wanted=lookup.wanted)
    files = Files(unit.program, lookup, characters=budget.documents)
    commands = commands_of(container, budget, files)
    draft = read_programs(container, commands, unit, workload, given=annotation.document)
    is_silent = not (annotation.document or annotation.problems or annotation.reference)
    if is_silent and (draft is None or draft.is_idle):
        return Reading(
            skip=ReasonCode.NO_TRAINING,
            warnings=tuple(draft.warnings) if draft else (),
            wanted=lookup.wanted,
        )
    draft = draft or Draft()
    document, sources = _merge(draft, annotation, workload)
    absent = tuple(complete_model(document, sources, lookup, draft, path=unit.container_path))
    doubts = tuple(_doubts(draft, annotation))
    warnings = (*_request_warnings(unit), *draft.warnings, *doubts, *conflicts(annotation, draft))
    spec, invalid = _check(document, annotation, unit)
    unknowns = (
        *_open(draft, annotation),
        *absent,
        *_missing(document, draft, unit),
        *_budget(unit),
        *workload.problems,
    )
    mistakes = (*annotation.problems, *invalid)
    if annotation.reference is not None and (mistakes or unknowns):
        mistakes = (*mistakes, annotation.reference)
    elif annotation.reference is not None:
        warnings = (*warnings, f"{annotation.reference.path}: {annotation.reference.reason}")
    else:
        unknowns = (*_lacking(lookup, unknowns, unit), *unknowns)
    unknowns = (*mistakes, *unknowns)
    return Reading(
        spec=None if unknowns else spec,
        sources=sources,
        unknowns=_distinct(unknowns),
        warnings=warnings,
        partial=json_types(document),
        is_certain=not doubts,
        wanted=lookup.wanted,
    )


def load_parts() -> None:
    """Import everything that reading may need, so that the first to ask does not wait for it."""
    load_kinds()
    load_launchers()
    load_families()
    load(model_files, recorded, seen, shell, specs)


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


def _merge(
    draft: Draft, annotation: Annotation, workload: Workload
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the document and its sources with the owner's word over what was found.

    The kind of the object says which framework it is only where nothing else does.
    """
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
    if "framework" not in document and workload.framework:
        document["framework"] = workload.framework
        sources["framework"] = workload.framework_source
    return document, sources


def _check(
    document: Mapping[str, Any], annotation: Annotation, unit: Unit
) -> tuple[JobSpec | None, tuple[Finding, ...]]:
    """Return the spec, or every problem of *document*; what is missing is reported elsewhere."""
    if not annotation.document and document.keys() <= {"framework"}:
        return None, ()  # nothing that anybody wrote: model and batch are missing
    complete = dict(document)
    for path, value in _PLACEHOLDERS:
        part, _, key = path.partition(".")
        if not key:
            complete.setdefault(part, value)
        elif isinstance(complete.get(part, {}), Mapping):
            complete[part] = {key: value, **complete.get(part, {})}
    try:
        spec = specs.parse_spec(complete)
        if spec.model.source is not specs.ModelSource.TRACE:
            return spec, ()
        # Its digest is that of the job recorded: without the trace nobody may speak for that job.
        problem = Problem(path="model.source", message=_NO_TRACE)
        raise SpecError([problem])
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


def _lacking(lookup: Lookup, unknowns: Sequence[Finding], unit: Unit) -> Iterator[Finding]:
    """Yield the ConfigMaps that are not there, where one may say what *unknowns* ask for.

    They come first: what is inside of one is asked of nobody else.
    """
    if not unknowns or unknowns[0].code not in _ASKED:
        return
    for reference, problem in lookup.lacking.items():
        kind, _, name = reference.partition("/")
        if kind == "configmap":
            yield Finding(
                code=ReasonCode.DOCUMENT,
                path=unit.container_path,
                reason=f"the ConfigMap {name:.120}, which it refers to, {problem}",
                hint=unknowns[0].hint,
            )


def _budget(unit: Unit) -> Iterator[Finding]:
    """Yield what makes it impossible to say how much memory the container gets."""
    path = f"{unit.container_path}.resources"
    if unit.share is not None and unit.share.problem:
        yield Finding(
            code=ReasonCode.UNSUPPORTED,
            path=unit.share.path,
            reason=unit.share.problem,
            hint=_CLAIM_HINT if unit.gpu_resource == CLAIM else None,
        )
    elif not (is_gpu(unit.gpu_resource) or unit.gpu_resource in (CLAIM, *SHARED_RESOURCES)):
        yield Finding(
            code=ReasonCode.UNSUPPORTED,
            path=path,
            reason=f"{unit.gpu_resource} is not modelled; NVIDIA GPUs are",
        )


def _request_warnings(unit: Unit) -> Iterator[str]:
    """Yield what is odd about the GPUs asked for.

    In requests without limits: the API server refuses such pods. Left to be filled in: a card must
    hold its share anyway, and nodes with fewer cards are not told apart.
    """
    resources = unit.container_spec.get("resources") or {}
    key = "limits" if resources.get("limits") else "requests"
    for name, value in (resources.get(key) or {}).items():
        if is_gpu(name) and (value is None or is_unrendered(value)):
            shown = "null" if value is None else str(value)
            yield (
                f"{unit.container_path}.resources.{key}[{name}]: the number of GPUs {shown:.60} "
                "is not resolved; render the template before it is applied"
            )
    claims = gpu_claims(unit.pod, "spec")
    request = gpu_request(unit.container_spec, unit.container_path, claims=claims)
    if request is not None and not request.limited and request.resource != CLAIM:
        yield (
            f"{unit.container_path}.resources: {request.resource} is in requests without limits; "
            "the API server refuses such pods"
        )


def _distinct(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(findings))
