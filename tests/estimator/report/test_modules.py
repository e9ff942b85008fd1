"""Who holds memory at the peak, as a tree of modules."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from estimator.allocators.exact import ExactAllocator
from estimator.report.drawing import Branch
from estimator.report.modules import MAX_LARGEST, Alive, alive_at, largest_of, tree_of
from estimator.report.timeline import observed
from estimator.trace import Phase, Place, Role, TraceBuilder
from tests.estimator.report.programs import recorded

ROLES = ("parameters", "activations", "workspace")
NAMES = st.text(alphabet="ab./ ", max_size=12)


def alive(nbytes: int, module: str, role: str = "activations") -> Alive:
    """Return a tensor that *module* made."""
    place = Place(step=1, phase=Phase.FORWARD, operator="aten.mm", module=module)
    return Alive(nbytes=nbytes, role=role, place=place)


def shape(branch: Branch) -> object:
    """Return a branch as nested pairs."""
    below = [shape(child) for child in branch.children]
    return (branch.name, branch.bytes, below) if below else (branch.name, branch.bytes)


def test_tensors_are_grouped_by_the_parts_of_the_path() -> None:
    """The largest first; what a module has itself is named by its role."""
    tree = tree_of(
        [
            alive(10, "layer.0.attention"),
            alive(30, "layer.1"),
            alive(5, "layer.1", "parameters"),
            alive(7, "", "optimizer"),
            alive(100, "head"),
        ]
    )

    assert shape(tree) == (
        "allocated",
        152,
        [
            ("head", 100),
            (
                "layer",
                45,
                [("1", 35, [("activations", 30), ("parameters", 5)]), ("0.attention", 10)],
            ),
            ("optimizer", 7),
        ],
    )
    assert tree.live == {"activations": 140, "optimizer": 7, "parameters": 5}


def test_underscores_part_paths_only_of_flat_names() -> None:
    """MXNet's names hold the path in one word, PyTorch's attributes hold underscores."""
    tensors = [alive(10, "stage1_conv0_weight"), alive(20, "stage1_conv1_weight")]

    assert shape(tree_of(tensors)) == (
        "allocated",
        30,
        [("stage1_conv1_weight", 20), ("stage1_conv0_weight", 10)],
    )
    assert shape(tree_of(tensors, is_flat=True)) == (
        "allocated",
        30,
        [("stage1", 30, [("conv1.weight", 20), ("conv0.weight", 10)])],
    )


def test_many_small_modules_are_one() -> None:
    """A thousand modules of a thousandth each would be a page of slivers."""
    tree = tree_of([alive(1, f"layer.{index}") for index in range(1000)] + [alive(1001, "head")])

    assert shape(tree) == (
        "allocated",
        2001,
        [("head", 1001), ("layer", 1000, [("1000 smaller", 1000)])],
    )


@given(
    st.lists(st.tuples(st.integers(1, 10**9), NAMES, st.sampled_from(ROLES)), max_size=60),
    st.booleans(),
)
def test_nothing_is_lost_whatever_the_names(
    tensors: list[tuple[int, str, str]], is_flat: bool
) -> None:
    """Every branch is the sum of its children and of its roles."""
    tree = tree_of([alive(*each) for each in tensors], is_flat=is_flat)

    assert tree.bytes == sum(nbytes for nbytes, _, _ in tensors)
    branches = [tree]
    while branches:
        branch = branches.pop()
        assert sum(branch.live.values()) == branch.bytes
        assert not branch.children or sum(each.bytes for each in branch.children) == branch.bytes
        branches += branch.children


def test_a_module_of_any_depth_is_read() -> None:
    """A hostile name of ten thousand parts makes no deeper tree than others."""
    tree = tree_of([alive(10, ".".join("ab" * 5000)), alive(10, "a")])

    depth, branch = 0, tree
    while branch.children:
        depth, branch = depth + 1, branch.children[0]
    assert depth <= 12


def test_the_living_are_those_right_after_the_event() -> None:
    """What is freed before is gone, what comes after is not there, nothing of 0 bytes counts."""

    def record(builder: TraceBuilder) -> None:
        first = builder.alloc(100, Role.PARAMETER)
        builder.alloc(0, Role.INPUT)
        builder.at(step=1, phase=Phase.FORWARD, operator="aten.mm", module="layer")
        builder.free(first)
        builder.alloc(200, Role.ACTIVATION)
        builder.alloc(50, Role.ACTIVATION)

    program = recorded(record)
    found = observed(program, ExactAllocator())

    assert [
        (each.nbytes, each.role, each.place.module)
        for each in alive_at(program, found.blocks, event=3)
    ] == [(200, "activations", "layer")]


def test_the_largest_are_few_and_in_order() -> None:
    """Of equal ones the first born leads."""
    found = largest_of([alive(index // 2, f"m{index}") for index in range(60)])

    assert len(found) == MAX_LARGEST
    assert [each.born.module for each in found[:4]] == ["m58", "m59", "m56", "m57"]
