"""Reading YAML and JSON with limits."""

from __future__ import annotations

import pytest

from estimator.documents import MAX_BYTES, read_document, read_documents
from estimator.errors import SpecError


def test_yaml_and_json_give_the_same_values() -> None:
    """JSON and YAML are both accepted."""
    assert read_document('{"a": [1, true]}') == read_document("a: [1, true]") == {"a": [1, True]}


def test_many_documents_are_read_in_order() -> None:
    """`---` separates documents; an empty one is None."""
    assert list(read_documents("a: 1\n---\n---\nb: 2\n")) == [{"a": 1}, None, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x [1]\nb: *x\n", "aliases are not accepted"),
        ("a: !!python/object/apply:os.system [x]\n", "could not determine a constructor"),
        ("a: [", "not YAML or JSON"),
        ("a: 1\n---\nb: 2\n", "2 documents, one is accepted"),
        ("x" * (MAX_BYTES + 1), f"longer than {MAX_BYTES} bytes"),
        ("[" * 5000, "not YAML or JSON"),
        ('a: !!int ""', "not YAML or JSON"),
        ('a: !!float ""', "not YAML or JSON"),
        ("a: !!bool foo", "not YAML or JSON"),
        ("a: !!timestamp x", "not YAML or JSON"),
        ("a: 1" + ":1" * 300 + ".5", "not YAML or JSON"),
        ("a: " + "9" * 5000, "not YAML or JSON"),
    ],
)
def test_what_expands_or_runs_or_is_broken_is_refused(text: str, message: str) -> None:
    """Aliases, tags that build objects, broken text and endless nesting give a clear error."""
    with pytest.raises(SpecError, match=message):
        read_document(text, path="spec.yaml")
