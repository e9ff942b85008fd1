"""The reviews that are sent again and again: every kind, every way to say what a job trains.

which frameworks may be estimated -> Cases
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from admission.codes import Operation
from admission.review import Route
from deploy.demo import example_objects
from tests.admission.workloads.objects import OBJECTS
from tests.load.bodies import Body, body_of
from tests.load.specs import MXNET_MODELS, NAMESPACES, annotated, mxnet_spec, scripted

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
TOO_LARGE = 4096
"""A batch that no card holds: what would fit is searched for, and told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A review whose answer is known beforehand."""

    name: str
    body: Body
    reads_document: bool = False
    """Whether it may refer to a document, which may not be had in time."""


def cases(*, uses_torch: bool) -> tuple[Case, ...]:
    """Return the cases; without PyTorch all of them are estimated by MXNet's frontend, or not."""
    found = list(_of_mxnet())
    if uses_torch:
        found += _reviews(example_objects())
        found += _reviews(_corpus())
    return tuple(found)


def _of_mxnet() -> Iterator[Case]:
    """Yield a case of each kind, and of each thing that may happen to an object."""
    namespaces = list(NAMESPACES)
    for number, kind in enumerate(sorted(OBJECTS)):
        spec = mxnet_spec(model=MXNET_MODELS[number % len(MXNET_MODELS)])
        if number % 5 == 0:
            spec = mxnet_spec(batch=TOO_LARGE)
        namespace = namespaces[number % len(namespaces)]
        obj = annotated(kind, spec, name=f"known-{number}", namespace=namespace)
        route = (Route.MUTATE, Route.VALIDATE)[number % 2]
        yield Case(name=f"{kind} {route.value}", body=body_of(obj, route=route))
    job = annotated("Job", mxnet_spec(), name="job", namespace="team-0")
    for operation in (Operation.UPDATE, Operation.DELETE):
        for route in Route:
            body = body_of(job, route=route, operation=operation)
            yield Case(name=f"{operation.value} {route.value}", body=body)
    silent = annotated("Job", None, name="unreadable", namespace="team-1")
    yield Case(name="unreadable", body=body_of(silent, route=Route.MUTATE))
    for namespace in ("team-2", "strict"):
        obj = scripted(0, namespace=namespace)
        body = body_of(obj, route=Route.MUTATE)
        yield Case(name=f"ConfigMap in {namespace}", body=body, reads_document=True)


def _reviews(objects: Iterator[dict[str, Any]]) -> Iterator[Case]:
    for obj in objects:
        for route in Route:
            metadata = obj["metadata"]
            called = metadata.get("name") or metadata["generateName"]
            name = f"{obj['kind']} {called} {route.value}"
            yield Case(name=name, body=body_of(obj, route=route), reads_document=True)


def _corpus() -> Iterator[dict[str, Any]]:
    """Yield the manifests of tests/corpus whose framework is PyTorch, MXNet or not known."""
    for path in sorted(CORPUS.glob("*.yaml")):
        expected = json.loads(path.with_suffix(".expect.json").read_text())
        spec: Mapping[str, Any] = expected.get("spec") or {}
        if spec.get("framework") in ("pytorch", "mxnet", None):
            for obj in yaml.safe_load_all(path.read_text()):
                if obj and obj.get("kind") != "ConfigMap":
                    yield obj
