"""The cheapest job a spec may be: what a rejection may rest on."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.errors import UnsupportedJobError
from estimator.frugal import frugal_spec
from estimator.notes import UnknownCode
from estimator.pipeline import Job
from estimator.spec import JobSpec
from estimator.trace import Trace
from estimator.traits import Traits
from tests.estimator.stub import WEIGHTS, StubFrontend, card, spec_of

LONGEST: dict[str, Any] = {"input": {"batchSize": 8, "sequenceLength": 512, "padding": "longest"}}


def test_a_spec_that_leaves_nothing_open_is_its_own_cheapest_job() -> None:
    """Nothing is traced twice where there is no doubt."""
    assert frugal_spec(spec_of()) is None


@pytest.mark.parametrize(
    "changes",
    [
        LONGEST,
        {"training": {"loss": "fused"}},
        {"training": {"loss": "chunked"}},
        {"training": {"kernels": "liger"}},
    ],
)
def test_what_may_need_less_is_as_short_as_it_can_be(changes: dict[str, Any]) -> None:
    """Padding to the longest is judged at one token, as are parts that this model may not have."""
    cheapest = frugal_spec(spec_of(**changes))

    assert cheapest is not None
    assert cheapest.input.sequence_length == 1
    assert cheapest.input.padding == "fixed"


@pytest.mark.parametrize("training", [{"loss": "chunked"}, {"kernels": "liger"}], ids=str)
def test_a_language_model_is_as_lean_as_the_leanest_loss(training: dict[str, Any]) -> None:
    """Which chunks a trainer makes is not said: a rejection rests on the fused loss."""
    model = {"source": "huggingface", "name": "a", "task": "causal-lm"}
    sizes = {"batchSize": 8, "sequenceLength": 512}

    cheapest = frugal_spec(spec_of(model=model, input=sizes, training=training))

    assert cheapest is not None
    assert cheapest.training.loss == "fused"
    assert cheapest.input.sequence_length == 512


def test_a_length_that_was_taken_may_be_one_token() -> None:
    """Of the text that is fed and of the one that is made; what is stated stays."""
    taken = {"input.sequenceLength", "input.targetLength", "runtime"}

    cheapest = frugal_spec(spec_of(input={"batchSize": 8}), taken=taken)
    stated = frugal_spec(spec_of(input={"batchSize": 8, "sequenceLength": 512}), taken=taken)

    assert cheapest is not None
    assert (cheapest.input.sequence_length, cheapest.input.target_length) == (1, 1)
    assert stated is not None
    assert (stated.input.sequence_length, stated.input.target_length) == (512, 1)


def test_an_optimizer_that_is_not_stated_may_keep_nothing() -> None:
    """Stated, it is what it is, though it is the one that would have been taken."""
    open_spec = spec_of(training={"precision": "fp32"})
    optimizer = open_spec.training.optimizer.model_dump(by_alias=True)
    stated = spec_of(training={"precision": "fp32", "optimizer": optimizer})

    cheapest = frugal_spec(open_spec)

    assert cheapest is not None
    assert cheapest.training.optimizer.name == "sgd"
    assert stated.training == open_spec.training
    assert frugal_spec(stated) is None
    assert stated.digest() != open_spec.digest()


def test_a_trace_file_leaves_neither_open() -> None:
    """What was recorded is the job, whatever its spec does not say."""
    trace = spec_of(model={"source": "trace", "name": "net"}, training={"precision": "fp32"})

    assert frugal_spec(trace, taken={"input.sequenceLength"}) is None


def test_paged_states_may_leave_the_card() -> None:
    """The cheapest job with a paged optimizer keeps no state on the card."""
    cheapest = frugal_spec(spec_of(training={"optimizer": {"name": "adamw", "paged": True}}))

    assert cheapest is not None
    assert cheapest.training.optimizer.name == "sgd"
    assert not cheapest.training.optimizer.paged


@pytest.mark.parametrize("compiled", [{"mode": "reduce-overhead"}, {"cudaGraphs": True}])
def test_graphs_may_not_be_recorded(compiled: dict[str, Any]) -> None:
    """A rejection rests on the eager step, which holds less than a pool."""
    optimizer = {"name": "adamw", "paged": True}
    cheapest = frugal_spec(spec_of(training={"compile": compiled, "optimizer": optimizer}))

    assert cheapest is not None
    assert cheapest.training.compile.enabled
    assert not cheapest.training.compile.records_graphs
    assert cheapest.training.optimizer.name == "sgd"


def test_muon_keeps_a_momentum_of_everything_at_least() -> None:
    """Who gets AdamW is not in a spec: a rejection rests on one state a parameter."""
    optimizer = {"name": "muon", "inBackward": True}

    cheapest = frugal_spec(spec_of(training={"optimizer": optimizer}))

    assert cheapest is not None
    assert cheapest.training.optimizer.name == "sgd"
    assert cheapest.training.optimizer.momentum > 0
    assert cheapest.training.optimizer.in_backward


def test_the_length_of_a_history_is_certain_of_nothing() -> None:
    """L-BFGS may be told to remember less, and has nothing yet in its first step."""
    cheapest = frugal_spec(spec_of(training={"optimizer": {"name": "lbfgs"}}))

    assert cheapest is not None
    assert (cheapest.training.optimizer.name, cheapest.training.optimizer.momentum) == ("sgd", 0)


class _ByLength(StubFrontend):
    """Traces a batch of one in place of a sequence of one token; fails if *fails*."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.fails = fails

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
        """Return the stub's trace, small for one token."""
        if spec.input.sequence_length != 1:
            return super().trace_job(spec, traits=traits)
        if self.fails:
            message = "too short"
            raise UnsupportedJobError(message, code=UnknownCode.INPUT, path="input.sequenceLength")
        return super().trace_job(spec_of(1), traits=traits)


def test_an_mxnet_job_that_does_not_say_how_it_runs_may_be_bound_whole() -> None:
    """Stated either way, there is no doubt."""
    training: dict[str, Any] = {"optimizer": {"name": "sgd"}}

    cheapest = frugal_spec(spec_of(framework="mxnet", training=training))
    stated = frugal_spec(spec_of(framework="mxnet", training=training | {"compile": False}))

    assert cheapest is not None
    assert cheapest.training.compile.enabled
    assert stated is None


def test_padding_alone_never_rejects_a_job() -> None:
    """`least` is that of the shortest batch; what is expected stays at the longest."""
    plain = Job(spec=spec_of(8), frontend=StubFrontend()).on(card())
    shortest = Job(spec=spec_of(1), frontend=StubFrontend()).on(card())

    padded = Job(spec=spec_of(**LONGEST), frontend=_ByLength()).on(card())

    assert padded.least == shortest.least
    assert (padded.enough, padded.peak, padded.most) == (plain.enough, plain.peak, plain.most)


def test_where_the_cheapest_job_cannot_be_traced_only_the_weights_are_certain() -> None:
    """A failure of the second trace is no failure of the estimate."""
    estimate = Job(spec=spec_of(**LONGEST), frontend=_ByLength(fails=True)).on(card())

    assert estimate.least.reserved_bytes <= WEIGHTS


def test_a_reduce_bucket_nobody_sets_may_be_next_to_none() -> None:
    """DeepSpeed's default is 5e8 elements, the Trainer's `auto` far fewer."""
    unset = frugal_spec(spec_of(parallelism={"strategy": "zero2", "dataParallel": 2}))
    set_ = {"strategy": "zero2", "dataParallel": 2, "zero": {"reduceBucketElements": 1000}}

    assert unset is not None
    assert unset.parallelism.zero.reduce_bucket_elements == 1
    assert frugal_spec(spec_of(parallelism=set_)) is None


def test_gradients_may_be_reduced_in_every_micro_batch() -> None:
    """Whole ones that FSDP1 keeps under `no_sync` reject no job."""
    training = {"gradientAccumulationSteps": 8, "optimizer": {"name": "adamw"}}
    parallelism = {"strategy": "fsdp", "dataParallel": 4}

    cheapest = frugal_spec(spec_of(training=training, parallelism=parallelism))

    assert cheapest is not None
    assert cheapest.training.gradient_accumulation_steps == 1
    assert frugal_spec(spec_of(training=training)) is None


@pytest.mark.parametrize("objective", ["dpo", "orpo", "kto", "distill"])
def test_preferences_are_never_less_than_fused_training_on_the_batch(objective: str) -> None:
    """Whether a reference was asked ahead, and which loss scores the logits, no spec says."""
    cheapest = frugal_spec(spec_of(objective=objective))

    assert cheapest is not None
    assert cheapest.objective == "supervised"
    assert cheapest.training.loss == "fused"
