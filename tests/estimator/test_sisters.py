"""A job at another batch, from what was kept of two: the same as traced for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from estimator.catalog import resolve_device
from estimator.frontends import Frontend, load
from estimator.grid import at_batch
from estimator.pipeline import estimate
from estimator.sharding import Position, RankFrontend, positions_of
from estimator.sisters import sisters_of
from estimator.spec import JobSpec, parse_spec
from estimator.trace import Method, Role, Trace, TraceBuilder
from estimator.traits import Traits, traits_of
from tests.estimator.stub import StubFrontend, spec_of

A100 = resolve_device("a100-sxm4-40gb")
TRAITS = traits_of(A100, "pytorch")


class Watched(StubFrontend):
    """Remembers which batches it traced; some of them take another path."""

    def __init__(self, *, inner: Frontend | None = None, odd: int | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.odd = odd
        self.batches: list[int] = []

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
        """Return the trace of *inner*, or the stub's."""
        batch = spec.input.batch_size
        self.batches.append(batch)
        if batch == self.odd:
            builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
            builder.alloc(batch, Role.ACTIVATION)
            return builder.build()
        if self.inner is not None:
            return self.inner.trace_job(spec, traits=traits)
        return super().trace_job(spec, traits=traits)


def kept_of(
    frontend: Frontend, *specs: JobSpec, positions: Sequence[Position] = (Position(),)
) -> list[bytes]:
    """Return what jobs traced one after another hand to the next."""
    kept: list[bytes] = []
    for spec in specs:
        sisters = sisters_of(frontend, kept)
        for position in positions:
            RankFrontend(sisters, position).trace_job(spec, traits=TRAITS)
        kept += sisters.made()
    return kept


def test_the_third_batch_is_not_traced() -> None:
    """Two batches are kept; of the third nothing is, and one that is known is known."""
    kept = kept_of(StubFrontend(), spec_of(8), spec_of(4), spec_of(16))
    watched = Watched()

    found = [
        sisters_of(watched, kept).trace_job(spec_of(batch), traits=TRAITS) for batch in (2, 8, 64)
    ]

    assert len(kept) == 2
    assert watched.batches == []
    assert found == [
        StubFrontend().trace_job(spec_of(batch), traits=TRAITS) for batch in (2, 8, 64)
    ]


def test_one_sample_is_always_traced_and_never_kept() -> None:
    """It takes other paths."""
    kept = kept_of(StubFrontend(), spec_of(8), spec_of(4), spec_of(1))
    watched = Watched()

    sisters_of(watched, kept).trace_job(spec_of(1), traits=TRAITS)

    assert watched.batches == [1]
    assert kept_of(StubFrontend(), spec_of(1)) == []


@pytest.mark.parametrize(
    ("batch", "missing"),
    [(1, (2, 4)), (2, (4,)), (3, (6,)), (4, (2,)), (7, (14,)), (64, (32,))],
)
def test_a_job_lacks_the_batches_that_make_a_family(batch: int, missing: tuple[int, ...]) -> None:
    """One more, or two of a job of one sample; once they are traced, any other is found."""
    sisters = sisters_of(StubFrontend(), [])
    sisters.trace_job(spec_of(batch), traits=TRAITS)
    lacking = sisters.missing(spec_of(batch))
    kept = [*sisters.made()]

    for each in lacking:
        sisters.trace_job(spec_of(each), traits=TRAITS)
    kept += sisters.made()
    watched = Watched()
    found = sisters_of(watched, kept).trace_job(spec_of(24), traits=TRAITS)

    assert lacking == missing
    assert sisters.missing(spec_of(batch)) == ()
    assert watched.batches == []
    assert found == StubFrontend().trace_job(spec_of(24), traits=TRAITS)


def test_a_job_that_is_never_found_lacks_nothing() -> None:
    """Its loss cuts the tokens into pieces."""
    spec = spec_of(8, training={"loss": "fused"})
    sisters = sisters_of(StubFrontend(), [])
    sisters.trace_job(spec, traits=TRAITS)

    assert sisters.missing(spec) == ()


def test_other_jobs_cards_and_broken_bytes_are_traced_anew() -> None:
    """What is kept is found by the job and the traits of its card; the rest does not matter."""
    kept = kept_of(StubFrontend(), spec_of(8), spec_of(4))
    other = replace(TRAITS, flash_attention=False)
    watched = Watched()

    sisters_of(watched, kept).trace_job(spec_of(2, frameworkVersion="2.14.0"), traits=TRAITS)
    sisters_of(watched, kept).trace_job(spec_of(3), traits=other)
    sisters_of(watched, [b"", kept[0][:-1], kept[1]]).trace_job(spec_of(5), traits=TRAITS)

    assert watched.batches == [2, 3, 5]


def test_batches_that_differ_in_more_than_the_batch_are_traced_anew() -> None:
    """And no third is kept: it would be read for nothing."""
    frontend = Watched(odd=4)
    kept = kept_of(frontend, spec_of(8), spec_of(4), spec_of(16), spec_of(32))

    assert frontend.batches == [8, 4, 16, 32]
    assert len(kept) == 2


@pytest.mark.torch
def test_losses_that_cut_the_tokens_into_pieces_are_traced_each() -> None:
    """At batch 4 and 8 a fused loss has sixteen pieces, at batch 5 ten: no family says so."""
    spec = parse_spec(
        {
            "framework": "pytorch",
            **tuned(
                {**LLAMA, "num_hidden_layers": 1},
                "causal-lm",
                training={"precision": "bf16", "loss": "fused"},
            ),
        }
    )
    inner = load("pytorch")
    kept = kept_of(inner, at_batch(spec, 4), at_batch(spec, 8))

    events = [
        sisters_of(inner, kept).trace_job(at_batch(spec, batch), traits=TRAITS).num_events
        for batch in (4, 8, 5)
    ]

    assert kept == []
    assert events[0] == events[1] != events[2]


def test_plans_of_compilers_are_asked_for_each() -> None:
    """A compiler's arena grows with the batch as it likes."""

    class Compiled(Watched):
        def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
            return replace(super().trace_job(spec, traits=traits), method=Method.COMPILE)

    compiled = Compiled()
    sisters = sisters_of(compiled, [])

    for batch in (4, 8, 16):
        sisters.trace_job(spec_of(batch), traits=TRAITS)

    assert compiled.batches == [4, 8, 16]


LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
}
BERT = {
    "model_type": "bert",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}


def tuned(config: dict[str, Any], task: str, **changes: Any) -> dict[str, Any]:
    """Return a job on texts of 32 tokens: two of them are as long as the model is wide."""
    return {
        "model": {"source": "huggingface", "name": "m", "task": task, "config": config},
        "input": {"batchSize": 4, "sequenceLength": 32},
        "training": {"precision": "bf16"},
        **changes,
    }


JOBS: dict[str, dict[str, Any]] = {
    "resnet18": {
        "model": {"source": "torchvision", "name": "resnet18"},
        "input": {"batchSize": 4, "imageSize": [3, 64, 64]},
    },
    "bert": tuned(BERT, "masked-lm", training={"precision": "amp-bf16"}),
    "llama": tuned(LLAMA, "causal-lm"),
    "extended": tuned({**LLAMA, "num_hidden_layers": 9}, "causal-lm"),
    "checkpointed": tuned(
        LLAMA, "causal-lm", training={"precision": "bf16", "gradientCheckpointing": "full"}
    ),
    "lora": tuned(LLAMA, "causal-lm", adapter={"type": "lora", "rank": 8}),
    "fsdp": tuned(LLAMA, "causal-lm", parallelism={"strategy": "fsdp", "dataParallel": 4}),
    "pipeline": tuned(LLAMA, "causal-lm", parallelism={"pipelineParallel": 2}),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", JOBS)
def test_the_estimate_is_the_one_it_would_have_alone(name: str) -> None:
    """To the byte, without a trace; of the two that were kept one has kernels that are equal."""
    training = {"optimizer": {"name": "adamw"}, **JOBS[name].get("training", {})}
    spec = parse_spec({"framework": "pytorch", **JOBS[name], "training": training})
    inner = load("pytorch")
    kept = kept_of(inner, at_batch(spec, 2), at_batch(spec, 5), positions=positions_of(spec))
    watched = Watched(inner=inner)

    found = estimate(at_batch(spec, 24), (A100,), frontend=sisters_of(watched, kept))

    alone = estimate(at_batch(spec, 24), (A100,), frontend=inner)
    assert watched.batches == []
    assert [without_times(each) for each in found] == [without_times(each) for each in alone]


def without_times(found: Any) -> dict[str, Any]:
    """Return an estimate without how long it took."""
    document: dict[str, Any] = found.document()
    times = [key for key in document if "econds" in key]
    return {key: value for key, value in document.items() if key not in times}
