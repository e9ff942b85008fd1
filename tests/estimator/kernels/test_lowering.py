"""A trace becomes plain allocations."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from estimator.allocators.exact import ExactAllocator
from estimator.device import Device
from estimator.kernels import Block, End, Scratch, lower, together, uses_cudnn
from estimator.notes import AssumptionCode, Unknown, UnknownCode
from estimator.replay import replay
from estimator.trace import (
    FIRST_PRIVATE_POOL,
    EventKind,
    Kernel,
    Phase,
    Role,
    TensorFacts,
    Trace,
    TraceBuilder,
)
from estimator.units import MIB

A100 = Device(
    name="a100",
    total_bytes=None,
    reservation_bytes=0,
    budget_bytes=None,
    compute_capability=(8, 0),
)
CUBLAS = 8_519_680
ALLOC, FREE = EventKind.ALLOC.value, EventKind.FREE.value
POOL = FIRST_PRIVATE_POOL


def traced(record: Callable[[TraceBuilder], object], *, version: str = "2.13.0") -> Trace:
    """Return the trace of what *record* does."""
    builder = TraceBuilder(framework="pytorch", framework_version=version)
    record(builder)
    return builder.build()


def product(operator: str = "aten.mm", thread: str = "forward") -> Kernel:
    """Return a matrix product."""
    return Kernel(operator=operator, operands=(), attributes=(("thread", thread),))


def convolution() -> Kernel:
    """Return a contiguous fp32 1x1 convolution that copies 2 + 2 MiB and 4 KiB of weight."""
    return Kernel(
        operator="aten.convolution",
        operands=(
            TensorFacts(shape=(16, 32, 32, 32), dtype="float32"),
            TensorFacts(shape=(32, 32, 1, 1), dtype="float32"),
            TensorFacts(shape=(16, 32, 32, 32), dtype="float32"),
        ),
    )


WORKSPACE = 2 * (16 * 32 * 32 * 32 * 4) + 32 * 32 * 4


def test_a_trace_without_kernels_is_copied() -> None:
    """Allocations, frees, uses and emptied caches pass through unchanged."""

    def record(builder: TraceBuilder) -> None:
        tensor = builder.alloc(100, Role.INPUT, stream=1)
        builder.use(tensor)
        builder.free(tensor)
        builder.empty_cache()

    trace = traced(record)
    program = lower(trace, A100)

    assert program.sizes == trace.sizes
    assert (program.kinds, program.ids, program.places) == (trace.kinds, trace.ids, trace.places)
    assert (program.roles, program.streams) == (trace.roles, trace.streams)
    assert program.place_table == trace.place_table


def test_scratch_is_taken_at_the_call_and_freed_behind_it() -> None:
    """A convolution's workspace lives between its output and the next event, at its place."""

    def record(builder: TraceBuilder) -> None:
        builder.at(step=1, phase=Phase.FORWARD, operator="aten.convolution", module="conv")
        builder.alloc(100, Role.ACTIVATION)
        builder.kernel(convolution())
        builder.at(step=1, phase=Phase.FORWARD, operator="aten.relu", module="relu")
        builder.alloc(50, Role.ACTIVATION)

    program = lower(traced(record), A100)

    assert program.kinds == bytes([ALLOC, ALLOC, FREE, ALLOC])
    assert program.ids == array("q", [0, 2, 2, 1])
    assert program.sizes == array("q", [100, 50, WORKSPACE])
    assert program.roles[2] == Role.WORKSPACE
    assert program.places[1] == program.places[2] == program.places[0]
    assert program.choices == {2: (2 * MIB, 32 * 32 * 4, 0)}


def test_the_low_program_has_no_uncertain_workspace() -> None:
    """A bound is at its low end, nothing; a rule stays."""

    def record(builder: TraceBuilder) -> None:
        builder.kernel(convolution())
        builder.kernel(product())

    program = lower(traced(record), A100, end=End.LOW)

    assert program.sizes == array("q", [CUBLAS])
    assert program.kinds == bytes([ALLOC])


def test_each_thread_keeps_one_cublas_workspace() -> None:
    """Three products in two threads allocate two workspaces, which are never freed."""

    def record(builder: TraceBuilder) -> None:
        for thread in ("forward", "forward", "autograd"):
            builder.kernel(product(thread=thread))

    program = lower(traced(record), A100)

    assert program.sizes == array("q", [CUBLAS, CUBLAS])
    assert program.kinds == bytes([ALLOC, ALLOC])
    assert replay(program, ExactAllocator()).live[Role.WORKSPACE] == 2 * CUBLAS


def test_products_of_2_15_take_a_workspace_for_the_call() -> None:
    """Two products of two threads: each allocates its workspace and frees it."""

    def record(builder: TraceBuilder) -> None:
        for thread in ("forward", "autograd"):
            builder.kernel(product(thread=thread))

    program = lower(traced(record, version="2.15.0"), A100)

    assert program.sizes == array("q", [CUBLAS, CUBLAS])
    assert program.kinds == bytes([ALLOC, FREE, ALLOC, FREE])


def test_scratch_of_a_recorded_call_is_in_the_graphs_pool() -> None:
    """A convolution whose output is in a private pool takes its workspace there."""

    def record(builder: TraceBuilder) -> None:
        for stream in (builder.private_pool(), 0, 1):
            builder.alloc(100, Role.ACTIVATION, stream=stream)
            builder.kernel(convolution())

    program = lower(traced(record), A100)

    assert program.sizes == array("q", [100] * 3 + [WORKSPACE] * 3)
    assert program.streams == bytes([POOL, 0, 1, POOL, 0, 0])


def test_a_pools_cublas_workspace_goes_back_when_memory_outside_is_asked_for() -> None:
    """Two recordings with a loss between: each has a workspace of its own in the pool.

    That of a product outside is kept.
    """

    def record(builder: TraceBuilder) -> None:
        pool = builder.private_pool()
        for stream in (pool, pool, 0, pool):
            builder.alloc(100, Role.ACTIVATION, stream=stream)
            builder.kernel(product())

    program = lower(traced(record), A100)

    assert program.sizes == array("q", [100] * 4 + [CUBLAS] * 3)
    assert program.streams == bytes([POOL, POOL, 0, POOL, POOL, 0, POOL])
    assert program.ids == array("q", [0, 4, 1, 4, 2, 5, 3, 6])
    assert program.kinds == bytes([ALLOC, ALLOC, ALLOC, FREE, ALLOC, ALLOC, ALLOC, ALLOC])


def test_the_workspace_of_one_pool_goes_back_before_another_is_used() -> None:
    """A handle's workspace belongs to the pool of its stream."""

    def record(builder: TraceBuilder) -> None:
        for _ in range(2):
            builder.alloc(100, Role.ACTIVATION, stream=builder.private_pool())
            builder.kernel(product())

    program = lower(traced(record), A100)

    assert program.streams == bytes([POOL, POOL + 1, POOL, POOL + 1])
    assert program.ids == array("q", [0, 2, 2, 1, 3])
    assert program.kinds == bytes([ALLOC, ALLOC, FREE, ALLOC, ALLOC])


def test_the_jobs_environment_sets_the_workspace() -> None:
    """CUBLAS_WORKSPACE_CONFIG of the job counts, :0:0 means none."""
    trace = traced(lambda builder: builder.kernel(product()))

    assert lower(trace, A100, environment={"CUBLAS_WORKSPACE_CONFIG": ":0:0"}).sizes == (array("q"))


def test_a_bias_takes_cublaslts_workspace_in_older_versions() -> None:
    """torch 2.4: 1 MiB for the call; newer ones share the handle's."""

    def record(builder: TraceBuilder) -> None:
        builder.kernel(product("aten.addmm"))

    assert lower(traced(record, version="2.4.1+cu121"), A100).sizes == array("q", [CUBLAS, MIB])
    assert lower(traced(record), A100).sizes == array("q", [CUBLAS])


def test_an_addend_that_is_no_vector_goes_through_cublas() -> None:
    """A matrix added is no bias: no workspace of cuBLASLt."""
    matrix = TensorFacts(shape=(8, 8), dtype="float32")
    kernel = Kernel(operator="aten.addmm", operands=(matrix, matrix, matrix, matrix))
    trace = traced(lambda builder: builder.kernel(kernel), version="2.4.1+cu121")

    assert lower(trace, A100).sizes == array("q", [CUBLAS])


def test_a_fourier_transform_may_hold_a_complex_copy() -> None:
    """1,000 fp32 values: 8 bytes each, perhaps."""
    kernel = Kernel(
        operator="aten._fft_r2c", operands=(TensorFacts(shape=(1000,), dtype="float32"),)
    )
    trace = traced(lambda builder: builder.kernel(kernel))

    assert lower(trace, A100).sizes == array("q", [1000 * 8])
    assert lower(trace, A100, end=End.LOW).sizes == array("q")


def test_an_operator_without_a_rule_is_named_once() -> None:
    """It is charged nothing, and said so."""

    def record(builder: TraceBuilder) -> None:
        for size in (1, 2):
            builder.kernel(
                Kernel(
                    operator="aten._ctc_loss",
                    operands=(TensorFacts(shape=(size,), dtype="float32"),),
                )
            )

    program = lower(traced(record), A100)

    assert [(each.code, each.path) for each in program.unknowns] == [
        (UnknownCode.KERNEL, "aten._ctc_loss")
    ]
    assert program.kinds == b""


def test_what_was_assumed_is_said_once() -> None:
    """Two convolutions, one assumption."""

    def record(builder: TraceBuilder) -> None:
        builder.kernel(convolution())
        builder.kernel(convolution())

    program = lower(traced(record), A100)

    assert [each.code for each in program.assumptions] == [AssumptionCode.KERNEL_WORKSPACE]


def test_convolutions_call_cudnn() -> None:
    """A product does not."""
    assert uses_cudnn(traced(lambda builder: builder.kernel(convolution())))
    assert not uses_cudnn(traced(lambda builder: builder.kernel(product())))


def test_another_source_may_answer_for_convolutions() -> None:
    """A source that asks cuDNN replaces the bound."""

    class Asked:
        """Answers one size for everything."""

        def scratch(self, kernel: Kernel, device: Device) -> Scratch | Unknown:
            assert (kernel.operator, device) == ("aten.convolution", A100)
            return together(Block(nbytes=7 * MIB))

    trace = traced(lambda builder: builder.kernel(convolution()))

    assert lower(trace, A100, workspaces=Asked()).sizes == array("q", [7 * MIB])
    assert lower(trace, A100, workspaces=Asked(), end=End.LOW).sizes == array("q", [7 * MIB])


def test_a_search_takes_its_largest_workspace_at_the_first_call_only() -> None:
    """Two calls of equal shapes: at the high end the first one also takes what a search takes."""

    class Searching:
        """Searches with 9 MiB, runs with 1."""

        def scratch(self, kernel: Kernel, device: Device) -> Scratch | Unknown:  # noqa: ARG002
            return Scratch(
                groups=((Block(nbytes=MIB),),), search=((Block(nbytes=0, most=9 * MIB),),)
            )

    def record(builder: TraceBuilder) -> None:
        builder.kernel(convolution())
        builder.kernel(convolution())

    trace = traced(record)

    expected = lower(trace, A100, workspaces=Searching())
    lavish = lower(trace, A100, workspaces=Searching(), end=End.HIGH)

    assert expected.sizes == array("q", [MIB, MIB])
    assert lavish.sizes == array("q", [9 * MIB, MIB, MIB])
    assert lavish.kinds == bytes([ALLOC, FREE] * 3)


def test_groups_follow_one_another() -> None:
    """A backward's two products: the first workspace is free before the second is taken."""

    class Twice:
        """Two groups of one block each."""

        def scratch(self, kernel: Kernel, device: Device) -> Scratch | Unknown:  # noqa: ARG002
            return Scratch(groups=((Block(nbytes=MIB),), (Block(nbytes=2 * MIB),)))

    program = lower(traced(lambda b: b.kernel(convolution())), A100, workspaces=Twice())

    assert program.kinds == bytes([ALLOC, FREE, ALLOC, FREE])
    assert replay(program, ExactAllocator()).allocated == 2 * MIB


def test_sorting_holds_keys_and_indices_twice() -> None:
    """50,000 fp32 keys: 4 + 8 bytes each; nothing at the low end, thrice that at the high."""
    kernel = Kernel(
        operator="aten.sort",
        operands=(TensorFacts(shape=(10, 5000), dtype="float32"),),
        attributes=(("dim", -1),),
    )
    trace = traced(lambda builder: builder.kernel(kernel))

    assert lower(trace, A100).sizes == array("q", [50_000 * (4 + 8)])
    assert lower(trace, A100, end=End.LOW).sizes == array("q")
    assert lower(trace, A100, end=End.HIGH).sizes == array("q", [3 * 50_000 * (4 + 8)])


def test_variables_that_change_cudnns_choice_are_named() -> None:
    """They are not modelled; a job without convolutions does not care."""
    environment = {"TORCH_CUDNN_USE_HEURISTIC_MODE_B": "1"}
    convolving = traced(lambda builder: builder.kernel(convolution()))
    multiplying = traced(lambda builder: builder.kernel(product()))

    named = lower(convolving, A100, environment=environment).unknowns
    assert [each.path for each in named] == ["runtime.env.TORCH_CUDNN_USE_HEURISTIC_MODE_B"]
    assert lower(multiplying, A100, environment=environment).unknowns == ()
