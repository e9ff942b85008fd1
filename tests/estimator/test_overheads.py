"""Context, libraries and communication from published readings."""

from __future__ import annotations

from statistics import median, quantiles

import pytest

from estimator.catalog.gpus import all_gpus, gpu_named
from estimator.catalog.stacks import STACKS
from estimator.device import ComputeCapability, Device
from estimator.notes import AssumptionCode, UnknownCode
from estimator.overheads import Range, overheads_of, stack_of
from estimator.overheads.architectures import Architecture, architecture_of, stack_bytes
from estimator.overheads.contexts import context_of, cudnn_of, eager_contexts, libraries_of
from estimator.overheads.loading import Loading, loadings_of
from estimator.overheads.ranges import Spread, spread
from estimator.overheads.readings import Holds, all_readings, machine_of_2024
from estimator.units import GIB, MIB


def card(
    capability: ComputeCapability,
    total: int | None = 40 * GIB,
    *,
    multiprocessors: int | None = None,
    driver: str | None = None,
) -> Device:
    """Return a card of this compute capability."""
    return Device(
        name="card",
        total_bytes=total,
        reservation_bytes=0,
        budget_bytes=total,
        compute_capability=capability,
        multiprocessors=multiprocessors,
        driver=driver,
    )


def named(name: str) -> Device:
    """Return a card of the catalog, with its multiprocessors."""
    gpu = gpu_named(name)
    assert gpu is not None
    return card(gpu.compute_capability, multiprocessors=gpu.multiprocessors)


def total_of(device: Device, *, uses_cudnn: bool | None = False) -> Range:
    """Return what a process of torch 2.4.1 holds on *device* beside its allocator."""
    return overheads_of(
        device, framework="pytorch", framework_version="2.4.1+cu121", uses_cudnn=uses_cudnn
    ).total


def test_ranges_add_up_end_by_end() -> None:
    """Low with low, high with high."""
    one = Range(low=1, expected=2, high=3)

    assert one + one == one * 2 == Range(low=2, expected=4, high=6)


@pytest.mark.parametrize(
    ("version", "cuda", "cudnn"),
    [
        ("2.4.1+cu121", (12, 1), "9.1.0.70"),
        ("2.4.1", (12, 1), "9.1.0.70"),
        ("2.4.1+cu118", (11, 8), "9.1.0.70"),
        ("1.4.0", (10, 1), None),
        ("1.8.1+cu111", (11, 1), None),
        ("1.7.0+cu92", (9, 2), None),
        ("2.6.0+cu124", (12, 4), "9.1.0.70"),
        ("2.13.0+cu130", (13, 0), "9.20.0.48"),
    ],
)
def test_a_torch_version_names_its_libraries(
    version: str, cuda: tuple[int, int], cudnn: str | None
) -> None:
    """The build tag beats PyPI's default."""
    stack = stack_of(version)

    assert stack is not None
    assert (stack.cuda, stack.cudnn) == (cuda, cudnn)


@pytest.mark.parametrize("version", [None, "", "9.9.0", "nightly"])
def test_a_version_outside_the_table_has_no_stack(version: str | None) -> None:
    """Unknown is None, not a guess."""
    assert stack_of(version) is None


def test_stacks_are_in_order_and_once_each() -> None:
    """One row a minor release, oldest first."""
    versions = [stack.torch for stack in STACKS]

    assert versions == sorted(set(versions))


def test_few_readings_have_their_extremes_as_ends_and_at_least_a_fifth() -> None:
    """Two readings, 100 and 110: median 105, ends 84 and 126; many: 10 and 90 %."""

    def at(value: float) -> Spread:
        return Spread(low=value, expected=value, high=value)

    few = spread([at(100), at(110)])
    apart = spread([at(100), at(200)])
    many = spread([at(value) for value in range(11)])

    assert (few.low, few.expected, few.high) == pytest.approx((84, 105, 126))
    assert (apart.low, apart.expected, apart.high) == (100, 150, 200)
    assert (many.low, many.expected, many.high) == (1, 5, 9)


def test_every_reading_names_a_source_and_a_card() -> None:
    """Over fifty readings, each of a card of the catalog, none without a source."""
    readings = all_readings()

    assert len(readings) >= 50
    assert all(each.source and each.torch for each in readings)
    assert all(0 < each.mib.low <= each.mib.expected <= each.mib.high for each in readings)


def test_an_out_of_memory_text_leaves_what_pytorch_does_not_count() -> None:
    """CoSeR on an A100: 14.25 GiB less 12.87 GiB less 912.01 MiB is 501 MiB."""
    reading = next(each for each in all_readings() if each.source == "TianheWu/CoSeR#10")

    assert reading.mib.expected == pytest.approx((14.25 - 12.87) * 1024 - 912.01)


def test_lazy_contexts_are_recomputed_from_the_readings() -> None:
    """So many stacks as the readings' median and 10 and 90 % points, times the card's stack."""
    times = [
        each.mib.expected * MIB / stack_bytes(each.gpu.compute_capability, each.gpu.multiprocessors)
        for each in all_readings()
        if each.loading is Loading.LAZY and each.holds is Holds.CONTEXT
    ]
    tenths = quantiles(times, n=10, method="inclusive")
    stack = stack_bytes((8, 6), 28)

    context = context_of(Loading.LAZY, Architecture.AMPERE, stack)

    assert context == Range(
        low=round(tenths[0] * stack),
        expected=round(median(times) * stack),
        high=round(tenths[-1] * stack),
    )


@pytest.mark.parametrize("holds", [Holds.KERNELS, Holds.CUDNN])
def test_lazy_libraries_are_recomputed_from_the_readings(holds: Holds) -> None:
    """What readings have beyond the expected context, whatever the card."""
    rest = []
    for each in all_readings():
        if each.loading is Loading.LAZY and each.holds is holds:
            stack = stack_bytes(each.gpu.compute_capability, each.gpu.multiprocessors)
            context = context_of(Loading.LAZY, each.architecture, stack).expected
            rest.append(each.mib.expected * MIB - context)
    tenths = quantiles(rest, n=10, method="inclusive")
    libraries = libraries_of(Loading.LAZY, Architecture.ADA)
    cudnn = cudnn_of(Loading.LAZY, Architecture.ADA)

    if holds is Holds.KERNELS:
        found = (libraries.low, libraries.expected, libraries.high)
        assert found == pytest.approx((tenths[0], median(rest), tenths[-1]), abs=2)
    else:
        more = max(0, median(rest) - libraries.expected)
        assert (cudnn.low, cudnn.expected, cudnn.high) == pytest.approx(
            (0, more, tenths[-1]), abs=2
        )


def test_most_readings_lie_inside_the_range_of_their_card() -> None:
    """At least nine of ten published readings of modern software are between the ends."""
    lazy = [each for each in all_readings() if each.loading is Loading.LAZY]

    def is_inside(reading: Range, mib: float) -> bool:
        return reading.low <= mib * MIB <= reading.high

    inside = 0
    for each in lazy:
        stack = stack_bytes(each.gpu.compute_capability, each.gpu.multiprocessors)
        total = context_of(Loading.LAZY, each.architecture, stack)
        if each.holds is not Holds.CONTEXT:
            total += libraries_of(Loading.LAZY, each.architecture)
        if each.holds is Holds.CUDNN:
            total += cudnn_of(Loading.LAZY, each.architecture)
        # Two roundings to 0.01 GiB.
        slack = Range(low=-15 * MIB, expected=0, high=15 * MIB)
        inside += is_inside(total + slack, each.mib.expected)

    assert inside >= 0.9 * len(lazy)


def test_eager_contexts_are_recomputed_from_the_readings() -> None:
    """Volta: 1,130-1,280 fitted and 1,343 read. Fitted figures hold 50 MiB of libraries."""
    volta = eager_contexts()[Loading.EAGER_11, Architecture.VOLTA]
    fitted = (1130 + 1280) / 2 - 50

    assert volta.expected == fitted * MIB
    assert volta.low == round(min(0.8 * fitted, 1130 - 50) * MIB)
    assert volta.high == round(1.2 * (fitted + 1343) / 2 * MIB)


def test_every_range_is_ordered_and_no_card_is_without_one() -> None:
    """low <= expected <= high for each architecture and way to load."""
    for architecture in Architecture:
        for loading in Loading:
            rows = (
                context_of(loading, architecture, None),
                libraries_of(loading, architecture),
                cudnn_of(loading, architecture),
            )
            assert all(0 <= row.low <= row.expected <= row.high for row in rows)
            assert rows[0].low > 0


def test_a_context_grows_with_the_multiprocessors() -> None:
    """107 MiB on an RTX 4060 Ti, 555 on an RTX PRO 6000 (ggml-org/llama.cpp#23604)."""
    readings = {"rtx4060ti": 107, "rtx3090": 256, "h200": 520, "rtx-pro-6000-blackwell": 555}

    for name, mib in readings.items():
        context = overheads_of(named(name), framework="pytorch", framework_version="2.8.0").context
        assert context.low <= (mib + 2) * MIB
        assert context.high >= (mib - 2) * MIB


def test_unknown_multiprocessors_span_the_cards_of_the_architecture() -> None:
    """An Ada card without that figure is between an RTX 4060 and an L40S."""
    unknown, smallest, largest = card((8, 9)), named("rtx4060"), named("l40s")

    total = total_of(unknown)

    assert total.low == total_of(smallest).low
    assert total.high == total_of(largest).high


def test_the_machine_of_2024_stays_the_expected_a100() -> None:
    """804 MiB and 262 for cuDNN fitted there; 459 to 900 holds most A100 readings."""
    device = named("a100-sxm4-40gb")
    machine = machine_of_2024()

    without, including = total_of(device), total_of(device, uses_cudnn=True)

    assert without.expected == machine.kernels.expected * MIB
    assert including.expected == (804 + 262) * MIB
    assert without.low <= 498 * MIB
    assert without.high == pytest.approx(818 * 1.1 * MIB, abs=2)
    assert including.low <= 853 * MIB
    assert including.high >= 1209 * MIB


@pytest.mark.parametrize(
    ("capability", "version", "reading"),
    [
        ((7, 0), "1.1.0", 300),
        ((7, 0), "1.1.0", 400),
        ((7, 0), "1.3.0", 1007 - 2),
        ((3, 5), "1.3.0+cu101", 200),
        ((3, 5), "1.3.0+cu101", 700),
        ((7, 5), "1.6.0+cu101", 877),
        ((8, 6), "1.7.1+cu110", 1486),
        ((8, 6), "1.8.0+cu111", 1001),
        ((7, 0), "1.10.0+cu113", 1343),
    ],
)
def test_published_contexts_lie_inside_their_range(
    capability: ComputeCapability, version: str, reading: int
) -> None:
    """Each reading of an eager context (MiB)."""
    context = overheads_of(card(capability), framework="pytorch", framework_version=version).context

    assert context.low <= reading * MIB <= context.high


def test_a_job_that_calls_cudnn_may_hold_more() -> None:
    """In the upper end only if it is not known whether it does."""
    device = named("rtx3090")
    without, unknown = total_of(device), total_of(device, uses_cudnn=None)
    including = total_of(device, uses_cudnn=True)

    assert unknown == Range(low=without.low, expected=without.expected, high=including.high)
    assert including.high > without.high


@pytest.mark.parametrize(
    ("cuda", "mode", "driver", "expected"),
    [
        ((10, 2), "LAZY", None, (Loading.EAGER_10,)),
        ((11, 6), "LAZY", None, (Loading.EAGER_11,)),
        ((11, 7), "", None, (Loading.LAZY,)),
        ((11, 7), "default", None, (Loading.EAGER_11,)),
        ((12, 1), "EAGER", None, (Loading.EAGER_11,)),
        ((12, 4), "DEFAULT", None, (Loading.LAZY,)),
        ((12, 1), "", "535.54.03", (Loading.LAZY,)),
        ((12, 1), "", "470.82.01", (Loading.LAZY, Loading.EAGER_11)),
    ],
)
def test_how_modules_load_follows_toolkit_setting_and_driver(
    cuda: tuple[int, int], mode: str, driver: str | None, expected: tuple[Loading, ...]
) -> None:
    """Lazy from 11.7 on, unless told otherwise; before driver 515 only with a newer library."""
    environment = {"CUDA_MODULE_LOADING": mode} if mode else {}

    assert loadings_of(cuda, environment, driver) == expected


def test_an_old_driver_is_expected_to_load_eagerly() -> None:
    """Driver 470 under torch 2.4: the range reaches down to a lazy context."""
    old = card((8, 6), driver="470.82.01", multiprocessors=82)
    overheads = overheads_of(old, framework="pytorch", framework_version="2.4.1")

    assert overheads.context.expected == 1300 * MIB
    assert overheads.context.low < 256 * MIB


def test_lazy_loading_shrinks_the_context_and_can_be_switched_off() -> None:
    """From CUDA 11.7 on modules load as they are used, unless the job says EAGER."""
    device = card((8, 6))
    eager = overheads_of(device, framework="pytorch", framework_version="1.12.0+cu116")
    lazy = overheads_of(device, framework="pytorch", framework_version="1.13.0")
    forced = overheads_of(
        device,
        framework="pytorch",
        framework_version="1.13.0",
        environment={"CUDA_MODULE_LOADING": "EAGER"},
    )

    assert lazy.context.high < eager.context.low
    assert forced.context == eager.context


def test_no_version_means_the_newest_with_the_span_of_all() -> None:
    """The range covers eager and lazy contexts; the assumption says so."""
    device = card((8, 6))
    newest = overheads_of(device, framework="pytorch", framework_version="2.15.0")
    unknown = overheads_of(device, framework="pytorch", framework_version=None)

    assert unknown.context.expected == newest.context.expected
    assert unknown.context.low == newest.context.low
    assert unknown.context.high == eager_contexts()[Loading.EAGER_11, Architecture.AMPERE].high
    assert AssumptionCode.FRAMEWORK_VERSION in {each.code for each in unknown.assumptions}
    assert AssumptionCode.FRAMEWORK_VERSION not in {each.code for each in newest.assumptions}


def test_a_generic_card_spans_all_architectures() -> None:
    """Without a card the range is that of the catalog."""
    generic = overheads_of(card((8, 0), None), framework="pytorch", framework_version="2.4.0")

    for gpu in all_gpus():
        architecture = architecture_of(gpu.compute_capability)
        assert architecture is not None
        stack = stack_bytes(gpu.compute_capability, gpu.multiprocessors)
        row = context_of(Loading.LAZY, architecture, stack)
        assert generic.context.low <= row.low
        assert generic.context.high >= row.high


def test_a_card_without_figures_is_an_unknown() -> None:
    """Compute capability 4.0 does not exist."""
    overheads = overheads_of(card((4, 0)), framework="pytorch", framework_version="2.4.0")

    assert [each.code for each in overheads.unknowns] == [UnknownCode.CONTEXT]
    assert overheads.context.high > 0


def test_other_frameworks_have_one_range() -> None:
    """TensorFlow, MXNet and JAX are not split by card; another framework is an unknown."""
    for framework in ("tensorflow", "mxnet", "jax"):
        overheads = overheads_of(card((7, 5)), framework=framework, framework_version=None)
        assert overheads.context.low > 0
        assert overheads.unknowns == ()

    other = overheads_of(card((7, 5)), framework="caffe", framework_version=None)
    assert [each.code for each in other.unknowns] == [UnknownCode.CONTEXT]


def test_communication_grows_with_ranks_and_links() -> None:
    """None for one rank, 544 MiB for two over NVLink, 688 for more, 91 over PCIe."""

    def expected(num_ranks: int, interconnect: str = "nvlink", count: int = 1) -> int:
        return overheads_of(
            card((8, 0)),
            framework="pytorch",
            framework_version="2.4.0",
            num_ranks=num_ranks,
            interconnect=interconnect,
            num_communicators=count,
        ).communication.expected

    assert expected(1) == 0
    assert expected(2) == 544 * MIB
    assert expected(8) == 688 * MIB
    assert expected(8, count=3) == 3 * 688 * MIB
    assert expected(8, "pcie") == 91 * MIB


def test_only_one_communicator_is_certain_to_be_whole() -> None:
    """The others connect when they are used: a channel is 0.5 + 4.7 + 4 MiB."""

    def low(count: int) -> int:
        return overheads_of(
            card((8, 0)),
            framework="pytorch",
            framework_version="2.9.0",
            num_ranks=8,
            num_communicators=count,
        ).communication.low

    channel = 524_288 + 4_915_200 + 4 * MIB
    assert low(1) == 512 * MIB
    assert low(5) == 512 * MIB + 4 * channel


def test_the_nccl_buffer_size_scales_its_memory() -> None:
    """Half the default of 4 MiB needs half; nonsense is ignored."""

    def expected(setting: str) -> int:
        return overheads_of(
            card((8, 0)),
            framework="pytorch",
            framework_version="2.4.0",
            num_ranks=2,
            environment={"NCCL_BUFFSIZE": setting},
        ).communication.expected

    assert expected(str(2 * MIB)) == 272 * MIB
    assert expected("many") == 544 * MIB
