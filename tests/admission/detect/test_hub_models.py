"""Models of the Hub: the catalog's, another revision of one, and those it lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.values import Document, Documents
from tests.admission.detect.jobs import codes, container, job, read

SPEC = "vramgate.dev/spec"
CONFIG = json.dumps({"model_type": "gpt2", "n_layer": 2, "torch_dtype": "float32"})


def reading(name: str, *, revision: str | None = None, documents: Documents | None = None) -> Any:
    """Return the reading of a job whose owner names a model of the Hub."""
    model = {"source": "huggingface", "name": name} | ({"revision": revision} if revision else {})
    stated = {"framework": "pytorch", "model": model, "input": {"batchSize": 1}}
    return read(job(container(), annotations={SPEC: json.dumps(stated)}), documents=documents or {})


def hub(reference: str, **files: str) -> Documents:
    """Return what the Hub says of *reference*; `__` in a name stands for a dot."""
    found = {name.replace("__", "."): text for name, text in files.items()}
    return {reference: Document(files=found)}


def test_a_model_of_the_catalog_is_not_asked_for() -> None:
    """Nor is its main revision."""
    for revision in (None, "main"):
        found = reading("google/gemma-2b", revision=revision)

        assert found.wanted == ()
        assert found.is_certain


def test_another_revision_is_asked_for_and_counts() -> None:
    """Another branch may be another architecture."""
    reference = "hf://google/gemma-2b@float16"
    assert reading("google/gemma-2b", revision="float16").wanted == (reference,)

    found = reading(
        "google/gemma-2b", revision="float16", documents=hub(reference, config__json=CONFIG)
    )
    assert found.spec.model.config["n_layer"] == 2
    assert found.is_certain


def test_another_revision_that_is_not_had_is_a_doubt() -> None:
    """The catalog's is taken for it, and nobody is refused on that."""
    documents = {"hf://google/gemma-2b@gone": Document(problem="is not there")}
    found = reading("google/gemma-2b", revision="gone", documents=documents)

    assert found.spec is not None
    assert not found.is_certain
    assert any("is not there" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"config__json": "[1]"}, "cannot be read"),
        ({"config__json": "{"}, "cannot be read"),
        ({"adapter_config__json": '{"base_model_name_or_path": "org/base"}'}, "org/base"),
        ({}, "has no config.json"),
    ],
)
def test_a_model_that_the_hub_does_not_tell_is_named(files: dict[str, str], reason: str) -> None:
    """The reading says what is missing instead of guessing."""
    found = reading("org/new", documents=hub("hf://org/new@main", **files))

    assert codes(found) == [ReasonCode.DOCUMENT]
    assert reason in found.unknowns[0].reason


BNB = {
    "quant_method": "bitsandbytes",
    "load_in_4bit": True,
    "load_in_8bit": False,
    "bnb_4bit_quant_type": "nf4",
    "bnb_4bit_use_double_quant": True,
    "bnb_4bit_compute_dtype": "bfloat16",
    "llm_int8_skip_modules": ["lm_head"],
}


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, {"bits": 4, "scheme": "gptq"}),
        ({"quant_method": "awq", "bits": 4, "version": "gemm"}, {"bits": 4, "scheme": "awq"}),
        ({"load_in_8bit": True}, {"bits": 8, "scheme": "int8"}),
        (
            BNB,
            {
                "bits": 4,
                "scheme": "nf4",
                "doubleQuant": True,
                "computeDtype": "bf16",
                "skipModules": ["lm_head"],
            },
        ),
        ({"quant_method": "mxfp4"}, None),
        ({"quant_method": "gptq", "bits": "four"}, None),
        ({"load_in_4bit": True, "bnb_4bit_quant_type": ["nf4"]}, None),
    ],
    ids=["gptq", "awq", "int8", "nf4", "mxfp4", "no-number", "no-word"],
)
def test_packed_weights_are_said_as_the_checkpoint_has_them(
    packed: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    """What a spec has no word for is left to the estimator, which names it."""
    config = json.dumps({**json.loads(CONFIG), "quantization_config": packed})
    found = reading("org/new", documents=hub("hf://org/new@main", config__json=config))

    assert found.spec is not None
    if expected is None:
        assert found.spec.quantization is None
    else:
        stated = found.spec.quantization.model_dump(mode="json", by_alias=True, exclude_unset=True)
        assert stated == expected
        assert found.sources["quantization"].startswith("hf://org/new")


def test_the_owners_word_beats_the_checkpoints() -> None:
    """A spec that says how it is loaded says it whole."""
    model = {"source": "huggingface", "name": "org/new"}
    stated = {
        "framework": "pytorch",
        "model": model,
        "input": {"batchSize": 1},
        "quantization": {"bits": 8, "scheme": "int8"},
    }
    config = json.dumps({**json.loads(CONFIG), "quantization_config": BNB})
    documents = hub("hf://org/new@main", config__json=config)
    found = read(job(container(), annotations={SPEC: json.dumps(stated)}), documents=documents)

    assert found.spec is not None
    assert found.spec.quantization is not None
    assert found.spec.quantization.scheme == "int8"
