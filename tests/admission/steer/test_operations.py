"""The difference of two objects, as operations that make one of the other."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.steer.operations import operations
from admission.steer.places import changed, found, place_of, pointer

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["", "a", "b"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["a", "a/b", "~", "c"]), inner, max_size=3),
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(["a", "a/b", "~"]), values, max_size=3)


@given(before=objects, after=objects)
def test_operations_make_one_object_of_another(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    """In the order given, by a library of somebody else."""
    patch = list(operations(before, after))

    made = jsonpatch.JsonPatch(patch).apply(before)

    assert made == after


def test_lists_are_appended_to_and_taken_from() -> None:
    """Nothing of a person's is written again."""
    before, after = {"l": ["x", "mine", "old"]}, {"l": ["mine"]}

    assert operations(before, after) == (
        {"op": "remove", "path": "/l/2"},
        {"op": "remove", "path": "/l/0"},
    )
    assert operations(after, {"l": ["mine", "y"]}) == ({"op": "add", "path": "/l/-", "value": "y"},)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("", ()),
        ("spec.tasks[0].template", ("spec", "tasks", 0, "template")),
        ("trainingruntime/x: spec.template", ("trainingruntime/x: spec", "template")),
        ("a..b", None),
        ("a[b]", None),
    ],
)
def test_field_path_is_a_place(path: str, place: object) -> None:
    """What leads nowhere in the object is not found there."""
    assert place_of(path) == place


def test_pointer_escapes_what_keys_may_hold() -> None:
    """RFC 6901: `~` first."""
    assert pointer(("a/b", "~1", 0)) == "/a~1b/~01/0"


def test_change_leaves_the_original_alone() -> None:
    """What is above a change is new, what is beside it is shared."""
    obj = {"a": {"b": 1}, "c": [{"d": 2}, {}]}

    new = changed(obj, ("c", 0, "d"), None)

    assert (obj["c"], new) == ([{"d": 2}, {}], {"a": {"b": 1}, "c": [{}, {}]})
    assert new["a"] is obj["a"]
    assert found(new, ("c", 7)) is None
