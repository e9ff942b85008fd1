"""Specs and settings: as text of strangers, and as documents with odd values in them.

bytes -> JobSpec and its digest, Settings, or every problem with its path
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import orjson
import yaml

from admission.detect.annotation import json_types
from estimator.documents import read_document, read_documents
from estimator.errors import SpecError
from estimator.spec import digest_of, parse_spec
from tests.fuzz.choices import Choices
from tests.fuzz.files_watch import nothing_outside
from tests.fuzz.shaping import mutated
from tests.fuzz.target import Broken, Target

MAX_PROBLEM = 6_000
"""Characters of one problem: it is shown to people. A path has up to 64 keys of 60 characters."""


def check_spec(document: object) -> None:
    """Read *document* as a spec; hold what comes out to what it says of itself.

    Raises: Broken.
    """
    try:
        spec = parse_spec(document)
    except SpecError as error:
        check_problems(error)
        return
    again = parse_spec(spec.document())
    parse_spec(spec.normalised())  # states every default, which may be another job
    travelled = parse_spec(orjson.loads(orjson.dumps(spec.document())))
    digests = {each.digest() for each in (spec, again, travelled)}
    if len(digests) != 1 or again != spec:
        raise Broken("the same spec has several digests")
    if digest_of(spec.identity()) not in digests:
        raise Broken("the digest is not that of what tells the job from others")


def check_problems(error: SpecError) -> None:
    """Hold *error* to problems that a person can read.

    Raises: Broken.
    """
    if not error.problems:
        raise Broken("refused without a problem")
    for problem in error.problems:
        if not problem.message or len(str(problem)) > MAX_PROBLEM:
            raise Broken(f"a problem of {len(str(problem))} characters")


def _run_spec_text(data: bytes) -> None:
    """Read text as the annotation and the command do."""
    text = data.decode("utf-8", "replace")
    with nothing_outside():
        try:
            document = read_document(text)
            list(read_documents(text, aliases=True))
        except SpecError as error:
            check_problems(error)
            return
        check_spec(document)
        if isinstance(document, dict):
            check_spec(json_types(document))


@cache
def specs() -> tuple[dict[str, Any], ...]:
    """Return specs that together use every key."""
    causal = {
        "apiVersion": "vramgate.dev/v1",
        "kind": "JobSpec",
        "framework": "pytorch",
        "frameworkVersion": "2.15.0",
        "objective": "sft",
        "model": {
            "source": "huggingface",
            "name": "org/x",
            "task": "causal-lm",
            "attention": "sdpa",
            "config": {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2},
        },
        "input": {"batchSize": 2, "sequenceLength": 128, "padding": "longest"},
        "training": {
            "precision": "amp-bf16",
            "optimizer": {"name": "adamw", "fused": True, "momentum": 0.0},
            "gradientCheckpointing": "full",
            "gradientAccumulationSteps": 4,
            "evaluation": {"batchSize": 4},
            "compile": True,
        },
        "adapter": {"type": "lora", "rank": 8, "targetModules": ["all-linear"]},
        "quantization": {"scheme": "nf4", "bits": 4},
        "parallelism": {"strategy": "zero3", "dataParallel": 8, "worldSize": 8},
        "runtime": {"env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}},
    }
    layers = [
        {"type": "Linear", "args": [64, 64]},
        {"type": "ReLU"},
        {"type": "Linear", "args": {"in_features": 64, "out_features": 10}},
    ]
    image = {
        "framework": "pytorch",
        "model": {"source": "layers", "name": "net", "config": {"layers": layers}},
        "input": {"batchSize": 32, "imageSize": [3, 32, 32], "shape": [64]},
        "training": {"optimizer": {"name": "sgd"}, "precision": "fp32"},
    }
    keras = {
        "framework": "jax",
        "model": {
            "source": "file",
            "name": "step",
            "config": {"format": "stablehlo", "content": "bW9kdWxl"},
        },
        "input": {"batchSize": 1},
        "phase": "infer",
    }
    return causal, image, keras


def _run_spec_objects(data: bytes) -> None:
    """Change values in a spec."""
    choices = Choices(data)
    with nothing_outside():
        document = mutated(choices.pick(specs()), choices, donors=specs())
        check_spec(document)
        check_spec(json_types(document) if isinstance(document, dict) else document)


def _spec_texts() -> Iterable[bytes]:
    for spec in specs():
        yield orjson.dumps(spec)
        yield yaml.safe_dump(spec).encode()
    yield b"framework: pytorch\nmodel: &a [*a]\ninput: {batchSize: !!int ''}\n"
    yield b"--- 1\n--- 2\n"
    yield b"a: &a [1]\nb: [*a, *a]\n<<: {c: 1}\nd: !!binary aGk=\ne: 2026-01-01\n"


def _decisions() -> Iterable[bytes]:
    for number in range(48):
        yield bytes((number, 1, number * 3 % 256, number % 8, number * 7 % 256, 1, number, 0, 5))
        yield bytes(range(number, number + 40))


WORDS = tuple(
    word.encode()
    for word in (
        *("framework", "pytorch", "jax", "model", "source", "config", "input", "batchSize"),
        *("!!int", "!!float", "!!binary", "!!python/object:os.system", "&a", "*a", "<<", "---"),
        *("1e999", ".nan", ".inf", "-0", "0x", "0o7", "1:1:1.5", "\\u0000", "\\ud800", "null"),
        *("parallelism", "training", "optimizer", "runtime", "env", "layers", "imageSize"),
    )
)

TARGETS = (
    Target(
        name="spec-text",
        run=_run_spec_text,
        seeds=_spec_texts,
        dictionary=WORDS,
        max_bytes=8192,
        begins=(b"", b"a: ", b"a: [", b"a: 1"),
    ),
    Target(name="spec-objects", run=_run_spec_objects, seeds=_decisions, max_bytes=400),
)
