"""The planner on graphs small enough to do by hand, and what holds for every plan."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from estimator.frontends.mxnet.graph import FIRST, Entry, Node, Sharing
from estimator.frontends.mxnet.planner import Plan, plan, references_of


def node(name: str, elements: int, *inputs: Node, sharing: Sharing | None = None) -> Node:
    """Return a node with one output of *elements* in single precision."""
    made = Node(
        "op",
        name,
        inputs=[Entry(each, 0) for each in inputs],
        shapes=[(elements,)],
        dtypes=["float32"],
    )
    if sharing is not None:
        made.sharing = sharing
    return made


def planned(order: list[Node], *outputs: Node) -> Plan:
    """Return the plan of nodes whose *outputs* are read from outside."""
    return plan(order, references_of(order, [Entry(each, 0) for each in outputs]))


def data(elements: int = 1) -> Node:
    """Return an input."""
    return Node("null", "data", shapes=[(elements,)], dtypes=["float32"])


def test_a_chain_needs_two_blocks_in_turn() -> None:
    """The third output lies where the first did: its reader has run."""
    x = data()
    first = node("a", 10, x)
    second = node("b", 10, first)
    third = node("c", 10, second)

    found = planned([x, first, second, third], third)

    assert found.total == (10 + 10) * 4
    assert found.placed[third, 0] == found.placed[first, 0]


def test_an_output_takes_the_place_of_an_input_nobody_else_reads() -> None:
    """A chain that may write in place needs one block."""
    x = data()
    first = node("a", 10, x)
    second = node("b", 10, first, sharing=FIRST)

    assert planned([x, first, second], second).total == 10 * 4


def test_an_input_that_is_read_again_is_not_overwritten() -> None:
    """The second reader of an output keeps it from being taken."""
    x = data()
    first = node("a", 10, x)
    second = node("b", 10, first, sharing=FIRST)
    third = node("c", 10, first, second)

    assert planned([x, first, second, third], third).total == (10 + 10 + 10) * 4


def test_a_free_block_grows_up_to_sixteen_times() -> None:
    """A block of a sixteenth of the size is taken and grown; a smaller one is left."""
    x = data()
    small = node("a", 10, x)
    other = node("b", 1, small)
    grown = node("c", 160, other)
    found = planned([x, small, other, grown], grown)
    assert found.total == (160 + 1) * 4

    beyond = node("d", 176, other)
    found = planned([x, small, other, beyond], beyond)
    assert found.total == (10 + 1 + 176) * 4


def test_half_precision_is_planned_in_four_bytes_and_allocated_in_two() -> None:
    """Plans compare elements, whatever their type; what is allocated is what lies there."""
    x = data()
    half = node("a", 10, x)
    half.dtypes[0] = "float16"

    found = planned([x, half], half)

    assert found.total == 10 * 4
    assert found.storages[0].nbytes == 10 * 2


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(0, 5), st.integers(0, 5)), max_size=40))
def test_no_two_entries_that_are_both_read_later_share_a_block(
    steps: list[tuple[int, int, int]],
) -> None:
    """Recomputed from outside: blocks of entries that live at once are different."""
    order = [data()]
    for index, (elements, left, right) in enumerate(steps):
        inputs = {order[max(0, index - left)], order[max(0, index - right)]}
        order.append(node(f"n{index}", elements, *sorted(inputs, key=order.index)))
    last = order[-1]
    found = planned(order, last)

    born = {id(each): place for place, each in enumerate(order)}
    dies = {id(each): born[id(each)] for each in order}
    for place, each in enumerate(order):
        for entry in each.inputs:
            dies[id(entry.node)] = max(dies[id(entry.node)], place)
    dies[id(last)] = len(order)
    real = [each for each in order if not each.is_variable]
    for one in real:
        assert found.storages[found.placed[one, 0]].nbytes >= Entry(one, 0).nbytes
        for other in real:
            is_shared = found.placed[one, 0] == found.placed[other, 0]
            if one is not other and is_shared:
                apart = dies[id(one)] < born[id(other)] or dies[id(other)] < born[id(one)]
                assert apart
