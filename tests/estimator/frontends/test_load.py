"""The table of frontends."""

from __future__ import annotations

import pytest

from estimator.errors import UnsupportedJobError
from estimator.frontends import FRONTENDS, install_hint, load
from estimator.notes import UnknownCode
from estimator.spec import Framework


def test_a_framework_without_a_frontend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A framework we do not trace is an unsupported job, with what is known."""
    monkeypatch.delitem(FRONTENDS, Framework.MXNET)

    with pytest.raises(UnsupportedJobError) as caught:
        load("mxnet")

    assert caught.value.code is UnknownCode.FRAMEWORK
    assert caught.value.path == "framework"
    assert "known: pytorch" in caught.value.message


def test_a_word_that_is_no_framework_is_refused_the_same_way() -> None:
    """Any other word gives the same error, not a traceback."""
    with pytest.raises(UnsupportedJobError, match="'caffe' is not modelled"):
        load("caffe")


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the framework is not installed, the hint says which extra brings it."""
    monkeypatch.setitem(FRONTENDS, Framework.JAX, "a_package_that_is_not_there")

    with pytest.raises(UnsupportedJobError, match="not installed") as caught:
        load("jax")

    assert caught.value.hint == install_hint(Framework.JAX)
    assert "EXTRA=jax" in install_hint(Framework.JAX)
