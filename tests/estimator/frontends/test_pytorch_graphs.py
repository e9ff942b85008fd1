"""Where the memory of a compiled model comes from that is recorded in CUDA graphs.

Expected behaviour is that of torch 2.15.0, `torch/_inductor/cudagraph_trees.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from estimator.notes import AssumptionCode
from estimator.trace import FIRST_PRIVATE_POOL, EventKind, Place, Role, Trace
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import bert, fault, job, layers, llama, torchvision

pytestmark = pytest.mark.torch

POOL = FIRST_PRIVATE_POOL
GRAPHS = {"mode": "reduce-overhead"}
BATCH = 4 * 2 * 1000
"""Bytes of a batch of two vectors of 1,000."""
LOGITS = 4 * 2 * 8 * 1000
"""Bytes of the logits of two texts of 8 tokens over 1,000 words."""

WITHOUT = "traced as eager, without the pool of CUDA graphs, which is not modelled with"


def compiled(model: dict[str, Any], how: Any = GRAPHS, **rest: Any) -> dict[str, Any]:
    """Return a job whose model is compiled; keys of `training` come as `training`."""
    training = rest.pop("training", {})
    given = {"frameworkVersion": "2.15.0", **rest}
    return job(model, training={"compile": how, **training}, **given)


def roles_in(trace: Trace, *, inside: bool) -> set[Role]:
    """Return the roles of the tensors in a private pool, or outside of any."""
    return {
        Role(role)
        for role, stream in zip(trace.roles, trace.streams, strict=True)
        if (stream >= POOL) is inside
    }


def allocations(trace: Trace, *, inside: bool) -> list[tuple[Place, int]]:
    """Return place and size of what is asked of a private pool, or of other memory."""
    return [
        (trace.place_table[place], trace.sizes[tensor])
        for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True)
        if kind == EventKind.ALLOC and (trace.streams[tensor] >= POOL) is inside
    ]


def emptied(trace: Trace) -> list[tuple[int, str]]:
    """Return step and phase of each emptied cache."""
    return [
        (trace.place_table[place].step, str(trace.place_table[place].phase))
        for kind, place in zip(trace.kinds, trace.places, strict=True)
        if kind == EventKind.EMPTY_CACHE
    ]


def alive_in_pool(trace: Trace, event: int) -> set[int]:
    """Return the tensors of private pools that are alive before *event*."""
    alive: set[int] = set()
    for kind, tensor in zip(trace.kinds[:event], trace.ids, strict=False):
        if kind == EventKind.ALLOC and trace.streams[tensor] >= POOL:
            alive.add(tensor)
        elif kind == EventKind.FREE:
            alive.discard(tensor)
    return alive


def first_inside(trace: Trace, step: int) -> int:
    """Return the first event of *step* that asks a private pool."""
    return next(
        event
        for event, (kind, tensor, place) in enumerate(
            zip(trace.kinds, trace.ids, trace.places, strict=True)
        )
        if kind == EventKind.ALLOC
        and trace.streams[tensor] >= POOL
        and trace.place_table[place].step == step
    )


def test_forward_and_backward_share_a_pool_and_the_rest_stays_outside(in_child: InChild) -> None:
    """Activations and gradients are made in one pool; weights, state and batches are not."""
    trace = in_child(children.trace, compiled(layers(1000, 1000, 1000)))

    outside = roles_in(trace, inside=False)
    assert fault(trace) is None
    assert set(trace.streams) == {0, POOL}
    assert {Role.ACTIVATION, Role.GRADIENT} <= roles_in(trace, inside=True)
    assert {Role.PARAMETER, Role.OPTIMIZER, Role.INPUT} <= outside
    assert Role.GRADIENT not in outside


def test_the_second_step_records_copies_of_the_batch(in_child: InChild) -> None:
    """The warm-up reads the batch where it is; the recording copies it into the pool."""
    trace = in_child(children.trace, compiled(layers(1000, 10)))

    batches = [
        (trace.place_table[place].step, trace.streams[tensor])
        for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True)
        if kind == EventKind.ALLOC
        and trace.roles[tensor] == Role.INPUT
        and trace.sizes[tensor] == BATCH
    ]
    assert batches == [(1, 0), (2, 0), (2, POOL), (3, 0)]


def test_making_the_pool_and_each_recording_empty_the_cache(in_child: InChild) -> None:
    """Once before the warm-up, then before the forward and the backward are recorded."""
    trace = in_child(children.trace, compiled(layers(1000, 10)))

    assert emptied(trace) == [(1, "forward"), (2, "forward"), (2, "backward")]


def test_the_third_step_replays_and_asks_only_for_what_is_outside(in_child: InChild) -> None:
    """A replay allocates nothing and calls nothing; batch, loss and optimizer go on."""
    trace = in_child(children.trace, compiled(layers(1000, 10)))

    steps = {
        trace.place_table[place].step
        for kind, place in zip(trace.kinds, trace.places, strict=True)
        if kind == EventKind.KERNEL
    }
    assert {place.step for place, _ in allocations(trace, inside=True)} == {1, 2}
    assert steps == {1, 2}
    assert BATCH in [
        nbytes for place, nbytes in allocations(trace, inside=False) if place.step == 3
    ]


def test_a_new_forward_frees_what_the_loop_still_holds(in_child: InChild) -> None:
    """The outputs of step 1 are kept by the loop, and gone when the pool is asked next."""
    trace = in_child(children.trace, compiled(layers(1000, 10), training={"keepOutputs": True}))
    second = first_inside(trace, 2)

    made = alive_in_pool(trace, first_inside(trace, 1) + 1)
    assert made
    assert alive_in_pool(trace, second) == set()


def test_outputs_the_loss_does_not_use_get_zeros(in_child: InChild) -> None:
    """The gradient of a language model's logits: zeros outside, read by the first step's graph
    where they are and copied by the others, of which only the recorded one shows."""
    trace = in_child(children.trace, compiled(bert(), input={"sequenceLength": 8}))

    zeros = [
        place.step
        for place, nbytes in allocations(trace, inside=False)
        if place.operator == "aten.zeros" and nbytes == LOGITS
    ]
    copies = [
        place.step
        for place, nbytes in allocations(trace, inside=True)
        if (place.operator, place.phase, nbytes) == ("aten.clone", "backward", LOGITS)
    ]
    assert zeros == [1, 2, 3]
    assert copies == [2]


def test_a_cache_that_a_model_hands_out_gets_zeros_too(in_child: InChild) -> None:
    """Keys and values of each layer, two texts of 8 tokens in 2 heads of 32, in every step."""
    trace = in_child(children.trace, compiled(llama(), input={"sequenceLength": 8}))

    zeros = [
        nbytes
        for place, nbytes in allocations(trace, inside=False)
        if place.operator == "aten.zeros" and place.step == 2
    ]
    assert zeros.count(4 * 2 * 2 * 8 * 32) == 2 * 4
    assert zeros.count(LOGITS) == 1


@pytest.mark.parametrize(("version", "held"), [("2.14.0", 1), ("2.15.0", 0)])
def test_a_compiled_backward_drops_its_gradients_from_2_15_on(
    in_child: InChild, version: str, held: int
) -> None:
    """Older ones hold the outputs' gradients until they are done."""
    document = compiled(bert(), frameworkVersion=version, input={"sequenceLength": 8})

    trace = in_child(children.trace, document)

    empty = max(i for i, kind in enumerate(trace.kinds) if kind == EventKind.EMPTY_CACHE)
    alive: set[int] = set()
    for kind, tensor, place in zip(trace.kinds[:empty], trace.ids, trace.places, strict=False):
        if kind == EventKind.FREE:
            alive.discard(tensor)
        elif trace.place_table[place].operator == "aten.zeros" and trace.sizes[tensor] == LOGITS:
            alive.add(tensor)
    assert len(alive) == held


@pytest.mark.parametrize(
    ("how", "pools"),
    [
        (True, 0),
        ({"mode": "default"}, 0),
        ({"mode": "max-autotune-no-cudagraphs"}, 0),
        ({"mode": "default", "cudaGraphs": True}, 1),
        ({"mode": "max-autotune"}, 1),
    ],
    ids=str,
)
def test_the_mode_says_whether_graphs_are_recorded(in_child: InChild, how: Any, pools: int) -> None:
    """As `torch._inductor.list_mode_options` has it, or the option itself."""
    trace = in_child(children.trace, compiled(layers(10, 10), how))

    notes = [note.code for note in trace.assumptions if note.path == "training.compile"]
    assert len({stream for stream in trace.streams if stream >= POOL}) == pools
    assert notes == [AssumptionCode.COMPILE] * pools


def test_a_job_without_graphs_has_the_eager_trace(in_child: InChild) -> None:
    """Compiled without graphs, every event is that of the plain job."""
    plain, without = (
        in_child(children.trace, compiled(torchvision(), how)) for how in (False, True)
    )

    for column in ("sizes", "roles", "streams", "kinds", "ids", "places", "place_table"):
        assert getattr(plain, column) == getattr(without, column)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"training": {"gradientAccumulationSteps": 2}}, "gradient accumulation"),
        ({"training": {"zeroGrad": {"setToNone": False}}}, "gradients that are set to zero"),
        ({"training": {"optimizer": {"inBackward": True}}}, "an optimizer in backward"),
        ({"frameworkVersion": "2.0.1"}, "torch before 2.1"),
        (
            {
                "parallelism": {
                    "strategy": "ddp",
                    "dataParallel": 2,
                    "gradientAsBucketView": True,
                }
            },
            "gradients that are views of buckets",
        ),
    ],
    ids=str,
)
def test_what_the_pool_is_not_modelled_with_is_named(
    in_child: InChild, change: dict[str, Any], reason: str
) -> None:
    """Such a job is traced as an eager one, and says why."""
    trace = in_child(children.trace, compiled(layers(10, 10), **change))

    reasons = [note.reason for note in trace.unknowns if note.path == "training.compile"]
    assert set(trace.streams) == {0}
    assert reasons == [f"{WITHOUT} {reason}"]


def test_inference_and_evaluation_record_their_forward_too(in_child: InChild) -> None:
    """Three passes of each: one warms up, one records, one replays. They share one pool."""
    inference = in_child(children.trace, compiled(layers(1000, 10), phase="infer"))
    evaluated = in_child(
        children.trace, compiled(layers(1000, 10), training={"evaluation": {"batchSize": 2}})
    )

    passes = [place.step for place, _ in allocations(inference, inside=True)]
    assert fault(inference) is None
    assert set(passes) == {1, 2}
    assert emptied(inference) == [(1, "forward"), (2, "forward")]
    assert set(evaluated.streams) == {0, POOL}
    assert emptied(evaluated)[-1] == (4, "evaluation")


def test_batches_made_ahead_stay_on_their_stream(in_child: InChild) -> None:
    """A loader's stream is no pool; only the copies that are recorded are inside."""
    document = compiled(layers(1000, 10), input={"prefetchBatches": 1})

    trace = in_child(children.trace, document)

    assert set(trace.streams) == {0, 1, POOL}


def test_generation_is_not_recorded(in_child: InChild) -> None:
    """A growing cache has another shape each time: traced as eager, and named."""
    document = compiled(
        {
            **bert(model_type="gpt2", n_embd=64, n_layer=2, n_head=4),
            "task": "causal-lm",
        },
        phase="infer",
        input={"sequenceLength": 8, "maxNewTokens": 4},
    )

    trace = in_child(children.trace, document)

    reasons = [note.reason for note in trace.unknowns if note.path == "training.compile"]
    assert set(trace.streams) == {0}
    assert reasons == [f"{WITHOUT} generation"]
