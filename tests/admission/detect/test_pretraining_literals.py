"""Python files as literals: what is told, and what depends on more."""

from __future__ import annotations

import pytest

from admission.detect.python_literals import (
    MAX_TEXT,
    UNKNOWN,
    call_of,
    events_of,
    read_module,
)


def names_of(text: str) -> dict[str, object]:
    """Return the names that *text* leaves behind."""
    module = read_module(text)
    assert module is not None
    events_of(module, module.tree.body)
    return module.names


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x = 5 * 8", 40),
        ("x: int = 7 // 2 - 1", 2),
        ("x = -3", -3),
        ("a, x = 1, 2", 2),
        ("x = [1, 'b']", [1, "b"]),
        ("y = 2\nx = y + y", 4),
        ("x = None", None),
        ("x = not True", False),
        ("if False:\n  x = 1\nelse:\n  x = 2", 2),
        ("with open('f') as f:\n  x = 3", 3),
    ],
)
def test_literals_are_known(text: str, value: object) -> None:
    """Constants, names, whole-number arithmetic and branches on constants."""
    assert names_of(text)["x"] == value


@pytest.mark.parametrize(
    "text",
    [
        "x = f()",
        "x = 1\nx += 1",
        "x = 1\nif z:\n  x = 2",
        "x = 1\nfor i in y:\n  x = i",
        "x = 1\ntry:\n  x = 2\nexcept E:\n  pass",
        "x = 1 / 2",
        "x = 10 // 0",
        "x = 2 ** 99999999",
        "x = 1 << 99999999",
        "x = (1 << 4) * y",
        "a, x = f()",
        "x = 'a' + 'b'",
        "x = " + "9" * 100 + " * " + "9" * 100,
    ],
)
def test_the_rest_is_unknown(text: str) -> None:
    """Nothing is executed, and nothing is guessed."""
    assert names_of(text)["x"] is UNKNOWN


@pytest.mark.parametrize("text", ["x = (", "\x00", "x" * (MAX_TEXT + 1), "(" * 5000])
def test_what_is_no_python_is_no_module(text: str) -> None:
    """Broken, huge or too deep."""
    assert read_module(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("recipe", ("recipe", {})),
        ("a.recipe(n=2, b='x')", ("a.recipe", {"n": 2, "b": "x"})),
        ("recipe(n=f())", ("recipe", {"n": UNKNOWN})),
        ("((", None),
        ("1", None),
    ],
)
def test_factories_are_a_name_with_keywords(text: str, expected: object) -> None:
    """What a command line names as a factory."""
    assert call_of(text) == expected


def test_calls_are_named_as_they_are_imported() -> None:
    """An alias is followed to the module it stands for."""
    module = read_module("from a.b import c as d\nx = d.make(n=1)\n")
    assert module is not None

    event = events_of(module, module.tree.body)[-1]

    assert (event.target, event.function, dict(event.keywords)) == ("x", "a.b.c.make", {"n": 1})
