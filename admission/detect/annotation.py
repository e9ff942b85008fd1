"""What the owner states about a job: `vramgate.dev/spec` and what `/spec-ref` leads to.

    annotations -> a partial JobSpec, merged over what was found

Key by key, the workload's over the template's; `model`, `adapter`, `quantization` and
`parallelism` are replaced whole once they are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from admission.codes import ReasonCode
from admission.detect.draft import Draft
from admission.detect.lookup import Lookup
from admission.detect.referred import resolve
from admission.values import Finding, Json, Unit, Workload
from admission.workloads.fields import mapping, text
from estimator.documents import read_document
from estimator.errors import SpecError

SPEC = "vramgate.dev/spec"
SPEC_REF = "vramgate.dev/spec-ref"
MAX_VALUES = 2_000
MAX_DEPTH = 64
MAX_NESTED = 100
"""Of what is shown: deeper than `parse_spec` accepts, far from where Python's own stack ends."""
MAX_SHOWN = 60
MAX_BITS = 1_000
"""Of a number that is shown: Python refuses to write out much longer ones."""
_SAID = ("containers[", "initContainers[", "env ", "configmap ")
"""How sources begin that somebody wrote: defaults contradict nobody."""
_REMEMBERED = 64
"""Annotations that are not parsed again: those of one workload's containers."""

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
    """Why a `spec-ref` leads to nothing."""
    content: bytes = b""
    """Of the Trace file that a `spec-ref` leads to."""
    content_path: str = ""


def read_annotation(unit: Unit, workload: Workload, lookup: Lookup, *, limit: int) -> Annotation:
    """Return what template and workload state, each in at most *limit* characters.

    What a `spec-ref` leads to is under what a `spec` states, wherever the two stand.

    Raises:
        RequestError: if annotations are no mapping of strings.
    """
    document: dict[str, Any] = {}
    sources: dict[str, str] = {}
    problems: list[Finding] = []
    reference: Finding | None = None
    content, content_path = b"", ""
    for key in (SPEC_REF, SPEC):
        for metadata, path in _places(unit, workload):
            annotations = mapping(metadata.get("annotations"), f"{path}.annotations")
            where = f"{path}.annotations[{key}]"
            raw = text(annotations.get(key), where)
            if key == SPEC_REF:
                referred = resolve(raw, lookup)
                raw, where = referred.text, f"{where} {raw:.120}"
                if referred.content:
                    content, content_path = referred.content, where
                if referred.problem:
                    reference = _unresolved(where, referred.problem)
            stated, faults = _parsed(raw, limit)
            problems.extend(_finding(where, fault) for fault in faults)
            replaced = replaced_parts(stated)
            sources = {
                name: source
                for name, source in sources.items()
                if name.partition(".")[0] not in replaced
            }
            document = merged(document, stated)
            sources.update(dict.fromkeys((name for name, _ in leaves(stated)), where))
    return Annotation(
        document=document,
        sources=sources,
        problems=tuple(problems),
        reference=reference,
        content=content,
        content_path=content_path,
    )


def _unresolved(where: str, problem: str) -> Finding:
    return Finding(
        code=ReasonCode.DOCUMENT,
        path=where,
        reason=f"what it refers to {problem}",
        hint=f"state the spec itself in the annotation {SPEC}",
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
        if part in stated and isinstance(stated[part], Mapping) and key in stated[part]
    )


def conflicts(annotation: Annotation, draft: Draft) -> Iterator[str]:
    """Yield a warning for each stated value that a flag contradicts; defaults contradict nobody."""
    found = dict(leaves(draft.document))
    for name, value in leaves(annotation.document):
        source = draft.sources.get(name, "")
        is_said = source.startswith(_SAID)
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


@lru_cache(maxsize=_REMEMBERED)
def _parsed(raw: str, limit: int) -> tuple[Json, tuple[str, ...]]:
    """Return the mapping in *raw*, never to be changed, or what is wrong with it."""
    if not raw:
        return {}, ()
    if len(raw) > limit:
        return {}, (f"longer than {limit} characters",)
    try:
        document = read_document(raw)
    except SpecError as error:
        return {}, tuple(str(problem.message) for problem in error.problems)
    if not isinstance(document, dict) or not _is_small(document):
        return {}, (
            "a JobSpec is a mapping of keys to values, "
            f"at most {MAX_VALUES} of them and {MAX_DEPTH} deep",
        )
    return json_types(document), ()


def json_types(document: Mapping[Any, Any], *, depth: int = 0) -> dict[str, Any]:
    """Return *document* in JSON types only: YAML's dates, huge numbers and odd keys as text.

    What is nested deeper than any spec may be is a text too: the spec is refused for its depth.
    """
    return {_plain_text(str(key)): _json_type(value, depth + 1) for key, value in document.items()}


def _json_type(value: object, depth: int) -> Any:
    if depth > MAX_NESTED:
        return f"nested deeper than {MAX_NESTED}"
    if isinstance(value, str):
        return _plain_text(value)
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, list | tuple):
        return [_json_type(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return json_types(value, depth=depth)
    if isinstance(value, int) and abs(value) < 1 << 63:
        return value
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"a number of {value.bit_length()} bits"
    return _plain_text(str(value)[:MAX_SHOWN])


def _plain_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _finding(path: str, reason: str) -> Finding:
    return Finding(code=ReasonCode.INVALID_SPEC, path=path, reason=reason)


def _is_small(document: object) -> bool:
    """Return whether *document* is one that a person may have written."""
    stack: list[tuple[object, int]] = [(document, 0)]
    seen = 0
    while stack:
        value, depth = stack.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_VALUES:
            return False
        if isinstance(value, dict):
            stack.extend((child, depth + 1) for child in value.values())
        elif isinstance(value, list | tuple):
            stack.extend((child, depth + 1) for child in value)
    return True


def _shown(value: object) -> str:
    shown = str(value)
    return shown if len(shown) <= MAX_SHOWN else shown[: MAX_SHOWN - 1] + "…"
