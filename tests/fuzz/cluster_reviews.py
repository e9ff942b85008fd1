"""Reviews: bytes as they come over the wire, and objects of every kind with odd values in them.

bytes -> AdmissionReview -> the whole answer, held to the rules of every answer
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from admission.detect.words import words
from admission.review import Route
from admission.values import Document
from tests.fuzz.choices import Choices
from tests.fuzz.desk import desk
from tests.fuzz.hostile import TEXTS
from tests.fuzz.objects import documents
from tests.fuzz.rules import check_line, check_review_answer
from tests.fuzz.shaping import as_json, mutated, mutated_text
from tests.fuzz.target import Broken, Target

WORDS = tuple(
    word.encode()
    for word in (
        '"apiVersion":"admission.k8s.io/v1"',
        '"kind":"AdmissionReview"',
        *words('"request": "uid" "object" "oldObject" "operation" "CREATE" "UPDATE" "DELETE"'),
        *words('"namespace" "metadata" "annotations" "vramgate.dev/spec" "spec" "template"'),
        *words('"containers" "resources" "limits" "nvidia.com/gpu" "command" "env" "dryRun"'),
        *words(r"null true {} [] \ud800 \u0000 \u001b[31m 1e400 99999999999999999999"),
    )
)

ANNOTATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "vramgate.dev/spec",
        (
            '{"model": {"source": "timm", "name": "resnet50"}, "input": {"batchSize": 8}}',
            '{"model": {"source": "timm", "name": "resnet50"}, "input": {"batchSize": 2560}}',
            "framework: pytorch\nmodel: {source: huggingface, name: gpt2, task: causal-lm}\n"
            "input: {batchSize: 4, sequenceLength: 512}\n",
        ),
    ),
    (
        "vramgate.dev/spec-ref",
        ("configmap/a/spec.yaml", "configmap/other/ns/key", "hf://org/model@main", "https://x.y/z"),
    ),
    ("vramgate.dev/retry-min-bytes", ("17179869184", "0", "99999999999999999999")),
    (
        "vramgate.dev/retry-learnt",
        (
            '{"container":"train","card":"a\\u001b[1m","gaveBytes":1,"when":"x","fingerprint":"..."}',
        ),
    ),
    ("vramgate.dev/steered", ('{"": []}', '{"spec.template": [{"key": "a"}]}')),
    ("vramgate.dev/verdict", ("fits", "oom")),
    ("vramgate.dev/estimate", ("123", "0")),
    ("vramgate.dev/peak-bytes", ('{"train": {"GPU-1": 17179869184}}',)),
    ("vramgate.dev/exempt-until", ("2030-01-01T00:00:00Z", "2030-01-01", "9999-12-31T23:59:59Z")),
    ("gpu-memory", ("5", "-5", "5Gi")),
    ("nvidia.com/gpumem", ("5",)),
)


def review_of(
    obj: Any, *, old: Any = None, name: str = "train", namespace: str = "team", uid: str = "0815"
) -> dict[str, Any]:
    """Return the AdmissionReview that creates *obj*, or updates *old* to it."""
    kind, version = obj.get("kind"), str(obj.get("apiVersion") or "v1")
    group, _, number = version.rpartition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {"group": group, "version": number, "kind": kind},
            "resource": {"group": group, "version": number, "resource": "jobs"},
            "namespace": namespace,
            "name": name,
            "operation": "CREATE" if old is None else "UPDATE",
            "object": obj,
            "oldObject": old,
            "userInfo": {"username": "somebody"},
            "dryRun": False,
        },
    }


def _answered(body: bytes, route: Route, uid: str) -> None:
    at = desk()
    answer = at.answer(body, route=route)
    check_review_answer(answer.status, answer.body, uid=uid)
    check_log(at.log.getvalue())


def check_log(text: str) -> None:
    """Hold every line that was logged to JSON of characters that are seen.

    Raises: Broken.
    """
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            raise Broken("a line of the log has no end")
        check_line(line[:-1], "a line of the log")
        orjson.loads(line)


def _run_bytes(data: bytes) -> None:
    """Answer a body as it is; its uid is what whoever can read it finds."""
    try:
        document = orjson.loads(data)
        uid = document["request"]["uid"]
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
        uid = ""
    _answered(data, Route.VALIDATE, uid)


def _byte_seeds() -> Iterable[bytes]:
    for obj in documents()[:40]:
        yield orjson.dumps(review_of(obj))
    yield orjson.dumps(review_of(documents()[1], old=documents()[1]))


def _run_objects(data: bytes) -> None:
    """Answer a review of an object with something odd in it, and of what it refers to."""
    choices = Choices(data)
    route = choices.pick((Route.MUTATE, Route.VALIDATE))
    obj = _object(choices)
    old = None if choices.byte() % 4 else mutated(obj, choices)
    name = choices.pick(TEXTS) if choices.chance(8) else "train"
    namespace = choices.pick(TEXTS) if choices.chance(8) else "team"
    at = desk()
    at.sources.given = {
        "*": Document(files={"": choices.text(200), "spec.yaml": choices.pick(TEXTS)})
    }
    whole = obj if isinstance(obj, dict) else {}
    review = review_of(whole, old=old, name=name, namespace=namespace)
    review["request"]["object"] = obj
    if choices.chance(6):
        review = mutated(review, choices)
    body = as_json(review).encode()
    request = review.get("request") if isinstance(review, dict) else None
    uid = request.get("uid") if isinstance(request, dict) else ""
    _answered(body, route, str(uid))


def _object(choices: Choices) -> Any:
    """Return an object of the corpus with changes, and with annotations that we read."""
    found = documents()
    obj = mutated(found[choices.below(len(found))], choices, donors=found)
    if not isinstance(obj, dict) or choices.chance(3):
        return obj
    for _ in range(choices.below(3)):
        key, texts = choices.pick(ANNOTATIONS)
        text: Any = choices.pick(texts)
        if choices.chance(2):
            text = mutated_text(text, choices)
        for metadata in _metadata(obj):
            metadata.setdefault("annotations", {})
            if isinstance(metadata["annotations"], dict):
                metadata["annotations"][key] = text
    return obj


def _metadata(obj: dict[str, Any]) -> Iterable[dict[str, Any]]:
    obj.setdefault("metadata", {})
    if isinstance(obj["metadata"], dict):
        yield obj["metadata"]


def _object_seeds() -> Iterable[bytes]:
    for number in range(0, 256, 3):
        yield bytes((number % 2, number, 1, number, 0, 7, 3, 1, 1, number, 2, 0, 5, 1, 1))


TARGETS = (
    Target(
        name="review-bytes",
        run=_run_bytes,
        seeds=_byte_seeds,
        dictionary=WORDS,
        max_bytes=48 * 1024,
        seconds=2.0,
        begins=(b"", b'{"request": {"uid": "'),
    ),
    Target(
        name="review-objects",
        run=_run_objects,
        seeds=_object_seeds,
        max_bytes=600,
        seconds=2.0,
    ),
)
