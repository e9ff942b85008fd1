"""Models of the catalog are built with as many weights as it says; all of them by `make soak`."""

from __future__ import annotations

import pytest

from estimator.catalog.models import known_model
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    "name",
    [
        "meta-llama/Llama-3.1-8B",
        "Qwen/Qwen2.5-0.5B",
        "google/gemma-2-2b",
        "gpt2",
        "google/flan-t5-small",
        "google-bert/bert-base-uncased",
        "google/vit-base-patch16-224",
        "openai/whisper-tiny",
    ],
)
def test_a_model_has_the_weights_of_its_checkpoint(in_child: InChild, name: str) -> None:
    """Tied weights once; a head that is stored apart is not tied."""
    known = known_model(name)

    assert known is not None
    assert in_child(children.weights_of, name) == known.parameters
