"""Reading YAML and JSON with limits."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import estimator
from estimator.documents import MAX_BYTES, read_document, read_documents, read_own
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
        (f"a: 1{':1' * 1_000}\n", "a whole number is longer than 1000 characters"),
        (f"a: 0x{'f' * 1_000}\n", "a whole number is longer than 1000 characters"),
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


def test_files_that_are_shipped_are_read_as_yaml_has_them() -> None:
    """The faster reader of our own files knows every kind of value that is in them."""
    root = Path(estimator.__file__).parents[1]
    paths = [*root.glob("estimator/**/data/*.yaml"), *root.glob("admission/**/data/*.yaml")]

    read = {path.name: read_own(path.read_text("utf-8")) for path in paths}

    assert {"gpus.yaml", "megatron.yaml"} <= read.keys()
    assert read == {path.name: yaml.safe_load(path.read_text("utf-8")) for path in paths}


def test_a_word_that_yaml_takes_for_yes_is_quoted_in_our_files() -> None:
    """`on`, `yes` and `no` are names of flags to a reader, and not to YAML."""
    with pytest.raises(KeyError):
        read_own("short: {y: yes}")
