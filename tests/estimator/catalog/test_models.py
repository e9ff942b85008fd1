"""The table of model architectures."""

from __future__ import annotations

import pytest

from estimator.catalog import known_model, known_model_ids


def test_a_hub_id_gives_the_architecture() -> None:
    """Llama 3 8B has grouped queries and 8,030,261,248 parameters."""
    model = known_model("meta-llama/Meta-Llama-3-8B")

    assert model is not None
    assert model.library == "transformers"
    assert model.task == "causal-lm"
    assert model.dtype == "bfloat16"
    assert model.parameters == 8_030_261_248
    assert model.config["model_type"] == "llama"
    assert model.config["num_key_value_heads"] == 8
    assert not model.separate_head
    assert not model.remote_code


def test_an_id_is_found_in_any_case_and_by_alias() -> None:
    """The Hub does not care about case; a fine-tune has the architecture of its base."""
    model = known_model("huggyllama/llama-7b")

    assert model is not None
    assert known_model(" HuggyLlama/LLAMA-7b ") == model
    assert known_model("lmsys/vicuna-7b-v1.1") == model


@pytest.mark.parametrize("name", ["", "llama", "meta-llama/Meta-Llama-3-8B/", "../data/gpus.yaml"])
def test_an_unknown_id_is_no_model(name: str) -> None:
    """Nothing is guessed from a part of a name."""
    assert known_model(name) is None


def test_every_entry_is_complete() -> None:
    """All 531 ids have a library we read, sizes and a source."""
    models = [known_model(name) for name in known_model_ids()]

    assert len(models) == 531
    for model in models:
        assert model is not None
        assert model.library in {"transformers", "diffusers"}
        assert model.parameters > 0
        assert model.dtype in {"float32", "float16", "bfloat16"}
        assert model.config
        assert model.source
        assert all(known_model(alias) is not None for alias in model.aliases)


def test_a_config_cannot_be_changed() -> None:
    """Callers share nothing: the config is read-only."""
    model = known_model("gpt2") or known_model("openai-community/gpt2")

    assert model is not None
    with pytest.raises(TypeError):
        model.config["n_layer"] = 1  # type: ignore[index]
