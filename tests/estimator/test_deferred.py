"""Modules that are imported once they are needed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from estimator.deferred import Deferred, later, load


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module that nobody has imported."""
    (tmp_path / "rarely_needed.py").write_text("def double(number):\n    return 2 * number\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rarely_needed", raising=False)
    return "rarely_needed"


def test_the_first_name_asked_for_imports_the_module(module: str) -> None:
    """And not the assignment."""
    deferred = Deferred(module)
    assert module not in sys.modules

    assert deferred.double(4) == 8
    assert module in sys.modules


def test_a_function_in_a_table_is_looked_up_when_it_is_called(module: str) -> None:
    """With what it is given."""
    deferred = Deferred(module)
    table = {"double": later(lambda: deferred.double)}
    assert module not in sys.modules

    assert table["double"](number=3) == 6


def test_what_is_deferred_can_be_loaded_early(module: str) -> None:
    """A server does, before it is asked."""
    load(Deferred(module))

    assert module in sys.modules


def test_a_name_that_is_not_there_is_said_to_be_missing(module: str) -> None:
    """As of a module that was imported."""
    with pytest.raises(AttributeError, match="rarely_needed"):
        _ = Deferred(module).triple
