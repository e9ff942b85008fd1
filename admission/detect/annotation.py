"""What the owner states about a job: `vramgate.dev/spec` on the pod template or the workload.

    annotations -> a partial JobSpec, merged over what was found

Key by key, the workload's over the template's; `model`, `adapter`, `quantization` and
`parallelism` are replaced whole once they are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from admission.codes import ReasonCode
from admission.detect.draft import Draft
from admission.values import Finding, Json, Unit, Workload
from admission.workloads.fields import mapping, text
from estimator.documents import read_document
from estimator.errors import Problem, SpecError

SPEC = "vramgate.dev/spec"
SPEC_REF = "vramgate.dev/spec-ref"
MAX_BYTES = 256 << 10
MAX_DEPTH = 64
MAX_SHOWN = 60

_WHOLE = {
    "model": "name",
    "adapter": "type",
    "quantization": "scheme",
    "parallelism": "strategy",
}
"""Part -> the key that, once stated, replaces the part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """The owner's word, merged over the places it may stand in."""

    document: Json = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    """Spec path of each stated value -> field path of the annotation."""
    problems: tuple[Finding, ...] = ()
    reference: Finding | None = None
    """A `spec-ref` that is not read yet."""


def read_annotation(unit: Unit, workload: Workload) -> Annotation:
    """Return what template and workload state.

    Raises:
        RequestError: if annotations are no mapping of strings.
    """
    document: dict[str, Any] = {}
    sources: dict[str, str] = {}
    problems: list[Finding] = []
    reference: Finding | None = None
    for metadata, path in _places(unit, workload):
        annotations = mapping(metadata.get("annotations"), f"{path}.annotations")
        where = f"{path}.annotations[{SPEC}]"
        stated = _parsed(text(annotations.get(SPEC), where), where, problems)
        sources = {
            name: source
            for name, source in sources.items()
            if name.partition(".")[0] not in replaced_parts(stated)
        }
        document = merged(document, stated)
        sources.update(dict.fromkeys((name for name, _ in leaves(stated)), where))
        value = text(annotations.get(SPEC_REF), f"{path}.annotations[{SPEC_REF}]")
        if value:
            reference = Finding(
                code=ReasonCode.UNSUPPORTED,
                path=f"{path}.annotations[{SPEC_REF}]",
                reason=f"{SPEC_REF} {value:.120} is not read yet",
                hint=f"state the spec itself in the annotation {SPEC}",
            )
    return Annotation(
        document=document, sources=sources, problems=tuple(problems), reference=reference
    )


def merged(below: Json, above: Json) -> dict[str, Any]:
    """Return *below* with *above* over it, key by key; named parts are replaced whole."""
    whole = replaced_parts(above)
    result = {key: value for key, value in below.items() if key not in whole}
    for key, value in above.items():
        under = result.get(key)
        if isinstance(under, Mapping) and isinstance(value, Mapping):
            result[key] = merged(under, value)
        else:
            result[key] = value
    return result


def replaced_parts(stated: Json) -> frozenset[str]:
    """Return the parts that *stated* replaces whole."""
    return frozenset(
        part
        for part, key in _WHOLE.items()
        if isinstance(stated.get(part), Mapping) and key in stated[part]
    )


def conflicts(annotation: Annotation, draft: Draft) -> Iterator[str]:
    """Yield a warning for each stated value that a flag contradicts; defaults contradict nobody."""
    found = dict(leaves(draft.document))
    for name, value in leaves(annotation.document):
        source = draft.sources.get(name, "")
        is_said = source.startswith("containers[") or source.startswith("env ")
        if is_said and name in found and found[name] != value:
            yield (
                f"{annotation.sources.get(name, SPEC)}: {name} {_shown(value)} contradicts "
                f"{source} {_shown(found[name])}; the annotation counts"
            )


def leaves(document: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the path and value of everything in *document* that is not a mapping."""
    stack: list[tuple[str, object]] = [(prefix, document)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, Mapping) and value:
            for key, item in reversed(tuple(value.items())):
                stack.append((f"{path}.{key}" if path else str(key), item))
        elif path:
            yield path, value


def _places(unit: Unit, workload: Workload) -> Iterator[tuple[Json, str]]:
    if unit.template:
        yield unit.pod_metadata, f"{unit.template}.metadata"
    yield workload.metadata, "metadata"


def _parsed(raw: str, where: str, problems: list[Finding]) -> dict[str, Any]:
    """Return the mapping in *raw*; what is wrong with it is added to *problems*."""
    if not raw:
        return {}
    try:
        if len(raw) > MAX_BYTES:
            raise _problem(where, f"longer than {MAX_BYTES} bytes")
        document = read_document(raw, path=where)
    except SpecError as error:
        problems.extend(_findings(error))
        return {}
    if not isinstance(document, dict) or _is_deep(document):
        problems.append(
            Finding(
                code=ReasonCode.INVALID_SPEC,
                path=where,
                reason=f"a JobSpec is a mapping of keys to values, at most {MAX_DEPTH} deep",
            )
        )
        return {}
    return json_types(document)


def json_types(document: Mapping[Any, Any]) -> dict[str, Any]:
    """Return *document* in JSON types only: YAML's dates, huge numbers and odd keys as text."""
    return {_plain_text(str(key)): _json_type(value) for key, value in document.items()}


def _json_type(value: object) -> Any:
    if isinstance(value, Mapping):
        return json_types(value)
    if isinstance(value, list | tuple):
        return [_json_type(item) for item in value]
    if isinstance(value, str):
        return _plain_text(value)
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and abs(value) < 1 << 63:
        return value
    return _plain_text(str(value)[:MAX_SHOWN])


def _plain_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _problem(where: str, message: str) -> SpecError:
    return SpecError([Problem(path=where, message=message)])


def _findings(error: SpecError) -> Iterator[Finding]:
    for problem in error.problems:
        yield Finding(code=ReasonCode.INVALID_SPEC, path=problem.path, reason=problem.message)


def _is_deep(document: object) -> bool:
    stack: list[tuple[object, int]] = [(document, 0)]
    while stack:
        value, depth = stack.pop()
        if depth > MAX_DEPTH:
            return True
        if isinstance(value, dict):
            stack.extend((child, depth + 1) for child in value.values())
        elif isinstance(value, list | tuple):
            stack.extend((child, depth + 1) for child in value)
    return False


def _shown(value: object) -> str:
    shown = str(value)
    return shown if len(shown) <= MAX_SHOWN else shown[: MAX_SHOWN - 1] + "…"
