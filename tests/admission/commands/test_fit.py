"""`vramgate fit`: what would make a job fit, each answer estimated."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from admission.cli import main
from admission.codes import Verdict
from admission.commands.fit_cards import cards_by_memory
from admission.commands.fit_document import FitDocument, fit_document
from admission.commands.fit_search import Found, Search, changed, positions_of
from admission.commands.fit_table import print_fit
from estimator.catalog import resolve_device
from estimator.device import Device
from estimator.errors import EstimateTimeoutError, TraceError
from estimator.result import AssumptionNote, DeviceFacts, Estimate, Fit, Knob
from estimator.spec import JobPhase, JobSpec, parse_spec
from estimator.tracefile import recorded
from estimator.traits import traits_of
from estimator.units import GIB, MIB
from estimator.workers.api import Job, spec_of
from tests.builders import estimate, spec_document
from tests.estimator.stub import StubFrontend, card
from tests.estimator.stub import spec_of as stub_spec

PER_TOKEN = 2 * MIB
"""A sample's, of `Linear`; half with sdpa."""


def text_spec(*, batch: int = 8, length: int | None = 1024, **model: Any) -> JobSpec:
    """Return a training step of a small Llama with 4,096 positions."""
    inputs = {"batchSize": batch} | ({"sequenceLength": length} if length else {})
    config = {"model_type": "llama", "max_position_embeddings": 4096}
    named = {"source": "huggingface", "name": "small", "config": config, **model}
    return parse_spec({"framework": "pytorch", "model": named, "input": inputs})


class Linear:
    """1 GiB and so much for each token: on every card the same, and remembered."""

    def __init__(self, *, broken: str = "", assumed: int = 512) -> None:
        self.asked: list[tuple[JobSpec, tuple[str, ...]]] = []
        self._broken = broken
        self._assumed = assumed

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        spec = spec_of(job)
        self.asked.append((spec, tuple(device.name for device in devices)))
        if self._broken in [device.name for device in devices]:
            raise TraceError("a card of its own kind")
        return tuple(self._one(spec, device) for device in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        assert spec.phase is JobPhase.TRAIN
        facts = DeviceFacts(name=devices[0].name, compute_capability="7.5")
        knob = Knob(path="training.gradientCheckpointing", value="full", text="checkpointing")
        searched = ("input.batchSize", "training.gradientCheckpointing")
        return (Fit(device=facts, largest_batch=2, knobs=(knob,), searched=searched),)

    def _one(self, spec: JobSpec, device: Device) -> Estimate:
        length = spec.input.sequence_length or self._assumed
        per_token = PER_TOKEN // 2 if spec.model.attention == "sdpa" else PER_TOKEN
        need = GIB + spec.input.batch_size * length * per_token
        found = estimate(least=need, card=device, spec=spec)
        if spec.input.sequence_length or spec.input.image_size:
            return found
        note = AssumptionNote(
            code="length", path="input.sequenceLength", value=str(self._assumed), reason="absent"
        )
        return found.model_copy(update={"assumptions": (note,)})


async def found(spec: JobSpec, gpu: str = "t4", estimator: Linear | None = None) -> Found:
    """Return what the searches find."""
    search = Search(spec=spec, device=resolve_device(gpu), estimator=estimator or Linear())
    return await search.found()


async def test_longest_sequence_fits_and_a_step_more_does_not() -> None:
    """8 samples of 1,024 tokens need 17 GiB; a T4 has 14.5."""
    answer = await found(text_spec())

    assert answer.verdict is Verdict.OOM
    assert answer.length is not None
    assert answer.length.largest is not None
    budget = resolve_device("t4").budget_bytes or 0
    assert 8 * answer.length.largest * PER_TOKEN + GIB <= budget
    assert 8 * (answer.length.largest + answer.length.step) * PER_TOKEN + GIB > budget
    assert answer.length.step == 64


async def test_no_sequence_is_longer_than_the_model_has_positions() -> None:
    """An 80 GiB card would hold more than 4,096 tokens of one sample."""
    answer = await found(text_spec(batch=1), "a100-sxm4-80gb")

    assert answer.length is not None
    assert (answer.length.largest, answer.length.limit) == (4096, 4096)


async def test_length_that_the_job_leaves_open_is_the_assumed_one() -> None:
    """The estimate says which; the search begins there."""
    answer = await found(text_spec(length=None))

    assert answer.length is not None
    assert answer.length.current == 512


async def test_job_of_images_has_no_sequence() -> None:
    """Nothing is tried that it does not have."""
    answer = await found(parse_spec(spec_document(batch_size=8)))

    assert answer.length is None
    assert "input.sequenceLength" not in fit_document(answer)["searched"]


async def test_nothing_fits_where_one_token_is_too_much() -> None:
    """The answer is none, never 0."""
    answer = await found(text_spec(batch=8192))

    assert answer.length is not None
    assert answer.length.largest is None
    assert "largestSequenceLength" not in fit_document(answer)


async def test_each_single_change_that_makes_it_fit_is_named() -> None:
    """A smaller batch, a shorter sequence, the hints' knobs, another attention."""
    answer = await found(text_spec(attention="eager"))

    assert [knob.path for knob in answer.knobs] == [
        "input.batchSize",
        "input.sequenceLength",
        "training.gradientCheckpointing",
        "model.attention",
    ]
    assert answer.has_way


async def test_job_that_fits_needs_no_change() -> None:
    """It is 0 knobs and a way."""
    answer = await found(text_spec(batch=3, length=512))

    assert (answer.verdict, answer.knobs, answer.has_way) == (Verdict.FITS, (), True)


async def test_cheapest_card_is_the_one_with_the_least_memory_that_holds_it() -> None:
    """17 GiB: every smaller card was too small."""
    answer = await found(text_spec())

    need = GIB + 8 * 1024 * PER_TOKEN
    assert answer.cheapest is not None
    name = answer.cheapest.device.name
    cards = cards_by_memory(None)
    before = cards[: [card.name for card in cards].index(name)]
    assert (resolve_device(name).budget_bytes or 0) >= need
    assert before
    assert all((card.budget_bytes or 0) < need for card in before)


async def test_card_that_cannot_be_told_hides_no_other() -> None:
    """The others of its round are asked one by one."""
    usual = await found(text_spec())
    assert usual.cheapest is not None
    broken = usual.cheapest.device.name

    answer = await found(text_spec(), estimator=Linear(broken=broken))

    assert answer.cheapest is not None
    assert answer.cheapest.device.name != broken


async def test_no_listed_card_holds_it() -> None:
    """Left out of the JSON, said in the text."""
    answer = await found(text_spec(batch=512))

    assert answer.cheapest is None
    assert "cheapestGpu" not in fit_document(answer)
    assert "no listed card holds it as it is" in shown(answer)


def test_positions_come_from_the_configuration_or_the_catalog() -> None:
    """Unknown where neither says."""
    by_name = {"source": "huggingface", "name": "gpt2"}
    known = parse_spec({"framework": "pytorch", "model": by_name, "input": {"batchSize": 1}})

    assert positions_of(text_spec()) == 4096
    assert positions_of(known) == 1024
    assert positions_of(parse_spec(spec_document())) is None


def test_positions_that_stand_for_padding_are_none_of_the_text() -> None:
    """RoBERTa's 514 begin behind its padding index, which is 1."""
    config = {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}

    assert positions_of(text_spec(config=config)) == 512


def test_change_leaves_the_rest_as_it_is() -> None:
    """One knob at a time."""
    before = text_spec()

    after = changed(before, "input.sequenceLength", 64)

    assert after.input.sequence_length == 64
    assert changed(after, "input.sequenceLength", 1024) == before


def shown(answer: Found) -> str:
    """Return what a person sees, on one line."""
    screen = io.StringIO()
    print_fit(answer, Console(file=screen))
    return " ".join(screen.getvalue().split())


async def test_text_and_json_say_the_same() -> None:
    """Figures in bytes for programs, in GiB for people."""
    answer = await found(text_spec(attention="eager"))

    document, text = json.loads(json.dumps(fit_document(answer))), shown(answer)

    assert document["kind"] == "Fit"
    assert document["verdict"] == "oom"
    assert document["largestBatch"] == 2
    assert document["enough"] == GIB + 8 * 1024 * PER_TOKEN
    assert f"longest sequence {document['largestSequenceLength']} tokens" in text
    assert f"cheapest card {document['cheapestGpu']['name']}, " in text
    assert all(knob["text"] in text for knob in document["knobs"])
    assert "does not fit" in text


@pytest.mark.parametrize(("batch", "gpu"), [(8, "t4"), (1, "a100-sxm4-80gb"), (512, "t4")])
async def test_json_is_what_its_schema_says(batch: int, gpu: str) -> None:
    """`vramgate schema fit` refuses other keys, so there are none."""
    document = json.loads(json.dumps(fit_document(await found(text_spec(batch=batch), gpu))))

    read = FitDocument.model_validate(document)

    assert read.model_dump(mode="json", by_alias=True, exclude_none=True) == document


async def test_tries_that_failed_are_told() -> None:
    """A length that took too long is not known to be too long."""

    class Slow(Linear):
        async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
            if (spec_of(job).input.sequence_length or 0) > 1024:
                raise EstimateTimeoutError("the estimate took longer than its 60 s")
            return await super().estimate(job, devices)

    answer = await found(text_spec(batch=1), estimator=Slow())

    reason = "the estimate took longer than its 60 s"
    assert fit_document(answer)["failures"] == [reason]
    assert f"not told some tries failed and count as not fitting: {reason}" in shown(answer)
    assert fit_document(await found(text_spec(batch=1)))["failures"] == []


async def test_what_was_tried_in_vain_is_named() -> None:
    """No change is proposed that was not estimated."""

    class Hopeless(Linear):
        async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
            (usual,) = await super().fit(spec, devices)
            return (usual.model_copy(update={"largest_batch": None, "knobs": ()}),)

    answer = await found(text_spec(batch=8192), estimator=Hopeless())

    assert not answer.has_way
    assert "no single change of those tried makes it fit: input.batchSize," in shown(answer)
    assert "largest batch not even 1" in shown(answer)


@pytest.mark.parametrize(
    "arguments", [["-"], ["gone.yaml", "--gpu", "t4"], ["-", "--gpu", "no-such-card"]]
)
def test_bad_arguments_are_bad_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """A card is needed; status 2, no traceback."""
    assert main(["fit", *arguments]) == 2

    assert "Traceback" not in capsys.readouterr().err


def test_command_searches_with_workers_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ResNet-50 of batch 256 is too large for a T4, and what it says would fit does.

    One of MXNet: its frontend imports nothing that takes seconds, and the search is the same.
    """
    path = tmp_path / "spec.json"
    document = {**spec_document(), "framework": "mxnet"}
    document["model"] = {"source": "mxnet", "name": "resnet50_v1"}
    path.write_text(json.dumps(document))

    assert main(["fit", str(path), "--gpu", "t4", "-o", "json"]) == 0
    fitted = json.loads(capsys.readouterr().out)

    assert fitted["verdict"] == "oom"
    document["input"]["batchSize"] = fitted["largestBatch"]
    path.write_text(json.dumps(document))
    assert main(["estimate", str(path), "--gpu", "t4", "-o", "json"]) == 0
    smaller = json.loads(capsys.readouterr().out)
    assert smaller["enough"]["deviceBytes"] <= smaller["device"]["budgetBytes"]
    assert fitted["cheapestGpu"]["budgetBytes"] >= fitted["cheapestGpu"]["enough"]


def test_trace_file_is_one_job_at_one_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No other batch or length of it can be tried; the other command answers."""
    path = tmp_path / "job.trace.gz"
    traits = traits_of(card())
    trace = StubFrontend().trace_job(stub_spec(8), traits=traits)
    path.write_bytes(recorded(stub_spec(8), traits=traits, trace=trace).content)

    assert main(["fit", str(path), "--gpu", "t4"]) == 2

    assert "a Trace file is one job at one size" in capsys.readouterr().err
