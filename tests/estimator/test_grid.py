"""One job at many batches from two traces: the same as each estimated for itself."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.catalog import resolve_device
from estimator.grid import Scaled, at_batch, grid
from estimator.pipeline import estimate
from estimator.spec import JobSpec, parse_spec
from estimator.trace import Trace
from estimator.traits import Traits, traits_of
from tests.estimator.stub import StubFrontend

pytestmark = pytest.mark.torch

BERT = {
    "model_type": "bert",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
JOBS: list[dict[str, Any]] = [
    {
        "model": {"source": "torchvision", "name": "resnet18"},
        "input": {"batchSize": 32, "imageSize": [3, 64, 64]},
    },
    {
        "model": {
            "source": "huggingface",
            "name": "b",
            "task": "sequence-classification",
            "config": BERT,
        },
        "input": {"batchSize": 4, "sequenceLength": 64},
        "training": {"precision": "amp-bf16"},
    },
]


@pytest.mark.parametrize("job", JOBS)
def test_every_batch_has_the_estimate_it_would_have_alone(job: dict[str, Any]) -> None:
    """To the byte, on each card; one sample is among them."""
    spec = parse_spec({"framework": "pytorch", **job})
    devices = (resolve_device("t4"), resolve_device("a100-sxm4-40gb"))

    found = grid(spec, (1, 3, 24), devices)

    alone = [each for b in (1, 3, 24) for each in estimate(at_batch(spec, b), devices)]
    for cell, expected in zip(found, alone, strict=True):
        assert cell.spec["input"]["batchSize"] == expected.spec["input"]["batchSize"]
        assert cell.device == expected.device
        assert (cell.least, cell.enough) == (expected.least, expected.enough)
        assert (cell.peak, cell.most) == (expected.peak, expected.most)


def test_losses_that_cut_the_tokens_into_pieces_are_traced_each() -> None:
    """A fused loss has as many pieces at batch 4 as at 8, and fewer at 5."""
    job = {
        "model": {
            "source": "huggingface",
            "name": "m",
            "task": "causal-lm",
            "config": {
                "model_type": "llama",
                "num_hidden_layers": 1,
                "hidden_size": 64,
                "num_attention_heads": 4,
                "intermediate_size": 128,
                "vocab_size": 1000,
            },
        },
        "input": {"batchSize": 4, "sequenceLength": 32},
        "training": {"precision": "bf16", "loss": "fused"},
    }
    spec = at_batch(parse_spec({"framework": "pytorch", **job}), 5)
    card = resolve_device("t4")

    (found,) = grid(spec, (5,), (card,))
    (alone,) = estimate(spec, (card,))

    assert (found.least, found.enough, found.peak) == (alone.least, alone.enough, alone.peak)


class Counting(StubFrontend):
    """Remembers which batches it traced."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
        """Return the stub's trace."""
        self.batches.append(spec.input.batch_size)
        return super().trace_job(spec, traits=traits)


def test_many_batches_are_two_traces() -> None:
    """Each further batch costs a replay."""
    counting = Counting()
    scaled = Scaled(inner=counting)
    spec = parse_spec({"framework": "pytorch", **JOBS[0]})
    traits = traits_of(resolve_device("t4"))

    for batch in (2, 16, 64):
        scaled.trace_job(at_batch(spec, batch), traits=traits)

    assert counting.batches == [4, 8]
