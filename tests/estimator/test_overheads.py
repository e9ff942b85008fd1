"""Context, libraries and communication by table."""

from __future__ import annotations

import pytest

from estimator.device import ComputeCapability, Device
from estimator.notes import AssumptionCode, UnknownCode
from estimator.overheads import Range, overheads_of, stack_of
from estimator.overheads.contexts import CONTEXTS, LIBRARIES, Architecture, Loading
from estimator.overheads.stacks import STACKS
from estimator.units import GIB, MIB


def card(capability: ComputeCapability, total: int | None = 40 * GIB) -> Device:
    """Return a card of this compute capability."""
    return Device(
        name="card",
        total_bytes=total,
        reservation_bytes=0,
        budget_bytes=total,
        compute_capability=capability,
    )


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


def test_every_table_row_is_ordered_and_every_architecture_has_lazy_rows() -> None:
    """low <= expected <= high, and no card is without figures."""
    rows = [*CONTEXTS.values(), *LIBRARIES.values()]

    assert all(row.low <= row.expected <= row.high for row in rows)
    assert {arch for loading, arch in CONTEXTS if loading is Loading.LAZY} == set(Architecture)
    assert set(LIBRARIES) == set(Architecture)


def test_the_sources_disagree_about_an_a100() -> None:
    """522 MiB in an OOM text, 884 calibrated, up to 1,420 in nvidia-smi: all inside the range."""
    total = overheads_of(card((8, 0)), framework="pytorch", framework_version="2.4.1+cu121").total

    assert total.low <= 522 * MIB
    assert total.high >= 1420 * MIB
    assert 522 * MIB < total.expected < 884 * MIB


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
        ((8, 9), "2.10.0+cu130", 426),
        ((9, 0), "2.7.1+cu128", 520),
        ((8, 0), "2.7.1", 398),
    ],
)
def test_published_contexts_lie_inside_their_range(
    capability: ComputeCapability, version: str, reading: int
) -> None:
    """Each reading of the table (MiB, bare context)."""
    context = overheads_of(card(capability), framework="pytorch", framework_version=version).context

    assert context.low <= reading * MIB <= context.high


@pytest.mark.parametrize(
    ("capability", "reading"), [((7, 0), 366), ((8, 6), 358), ((8, 9), 522), ((8, 0), 522)]
)
def test_out_of_memory_texts_lie_inside_context_and_libraries(
    capability: ComputeCapability, reading: int
) -> None:
    """Non-PyTorch memory of V100, A10G, RTX 4090 and A100 on torch 2.x (MiB)."""
    total = overheads_of(card(capability), framework="pytorch", framework_version="2.2.0").total

    assert total.low <= reading * MIB <= total.high


def test_a_job_that_calls_cudnn_loads_more() -> None:
    """262 MiB expected on top of the perceptrons' 804; in the upper end only if not known."""

    def total(uses_cudnn: bool | None, version: str = "2.4.1+cu121") -> Range:
        return overheads_of(
            card((8, 0)), framework="pytorch", framework_version=version, uses_cudnn=uses_cudnn
        ).total

    assert total(False).expected == (398 + 406) * MIB
    assert total(True).expected == (398 + 406 + 262) * MIB
    assert total(None) == Range(
        low=total(False).low, expected=total(False).expected, high=total(True).high
    )
    assert total(True, "1.12.0+cu116") == total(False, "1.12.0+cu116")


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
    assert unknown.context.high == 1486 * MIB
    assert AssumptionCode.FRAMEWORK_VERSION in {each.code for each in unknown.assumptions}
    assert AssumptionCode.FRAMEWORK_VERSION not in {each.code for each in newest.assumptions}


def test_a_generic_card_spans_all_architectures() -> None:
    """Without a card the range is that of the catalog."""
    generic = overheads_of(card((8, 0), None), framework="pytorch", framework_version="2.4.0")

    for architecture in Architecture:
        row = CONTEXTS[Loading.LAZY, architecture]
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
