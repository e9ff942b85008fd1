"""What would fit is found by estimating it."""

from __future__ import annotations

import pytest

from estimator.catalog import generic_device
from estimator.fit import Search
from estimator.pipeline import Job
from estimator.spec import parse_spec
from estimator.units import GIB
from tests.estimator.stub import StubFrontend, card, spec_of


def enough(batch: int, gib: int) -> int:
    """Return what the stub's job needs at *batch*, as the webhook would find it."""
    return Job(spec=spec_of(batch), frontend=StubFrontend()).on(card(gib * GIB)).enough.device_bytes


@pytest.mark.parametrize("gib", [4, 8, 15])
def test_the_largest_batch_fits_and_one_more_does_not(gib: int) -> None:
    """The answer is the edge: what is sent again fits, the next batch would not."""
    found = Search(spec=spec_of(4096), frontend=StubFrontend()).on(card(gib * GIB))

    assert found.largest_batch is not None
    assert enough(found.largest_batch, gib) <= gib * GIB
    assert enough(found.largest_batch + 1, gib) > gib * GIB


def test_no_batch_is_named_when_not_even_one_fits() -> None:
    """A card too small for a batch of one has no largest batch."""
    found = Search(spec=spec_of(8), frontend=StubFrontend()).on(card(GIB))

    assert found.largest_batch is None
    assert "input.batchSize" in found.searched


def test_a_batch_search_traces_a_handful_of_times() -> None:
    """Two traces serve every probe; only the answer is traced again."""
    frontend = StubFrontend()

    Search(spec=spec_of(4096), frontend=frontend).largest_batch(card(8 * GIB))

    assert frontend.num_traces <= 4


def test_knobs_that_do_not_help_are_searched_and_not_named() -> None:
    """Mixed precision changes nothing in the stub, so it is no way out."""
    found = Search(spec=spec_of(4096), frontend=StubFrontend()).on(card(8 * GIB))

    assert "training.precision" in found.searched
    assert found.knobs == ()


def test_a_card_of_unknown_capacity_has_no_answer() -> None:
    """Nothing fits or does not fit a card without a capacity."""
    found = Search(spec=spec_of(8), frontend=StubFrontend()).on(generic_device())

    assert (found.largest_batch, found.knobs, found.searched) == (None, (), ())


def test_a_transformer_is_offered_lora_shorter_sequences_and_more_gpus() -> None:
    """Each knob is a change that was estimated; of one path only the least change is named."""
    spec = parse_spec(
        {
            "framework": "pytorch",
            "model": {"source": "huggingface", "name": "any"},
            "input": {"batchSize": 1, "sequenceLength": 512},
            "parallelism": {"strategy": "ddp", "dataParallel": 2, "worldSize": 2},
        }
    )

    knobs = list(Search(spec=spec, frontend=StubFrontend()).tuning_knobs())

    assert ("adapter", {"type": "lora", "rank": 16}, "LoRA of rank 16") in knobs
    lengths = [value for path, value, _ in knobs if path == "input.sequenceLength"]
    assert lengths == [256, 128]
    assert ("parallelism.strategy", "fsdp", "FSDP over the 2 GPUs") in knobs
    more = [value for path, value, _ in knobs if path == "parallelism"]
    assert [each["dataParallel"] for each in more] == [4, 8, 16, 32, 64]
    assert "worldSize" not in more[0]


def test_a_deepspeed_job_is_offered_the_higher_stages() -> None:
    """Stages 2 and 3 of a job in stage 1."""
    spec = parse_spec(
        {
            "framework": "pytorch",
            "model": {"source": "huggingface", "name": "any"},
            "input": {"batchSize": 1},
            "parallelism": {
                "strategy": "zero1",
                "implementation": "deepspeed",
                "dataParallel": 2,
            },
        }
    )

    texts = [text for _, _, text in Search(spec=spec, frontend=StubFrontend()).sharing_knobs()]

    assert texts[:2] == ["ZeRO stage 2", "ZeRO stage 3"]
