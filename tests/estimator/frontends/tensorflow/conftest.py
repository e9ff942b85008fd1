"""A process that has imported the TensorFlow frontend, and forks for every call."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.estimator.frontends.jax_server import InChild, served


@pytest.fixture(scope="package")
def in_tensorflow_child() -> Iterator[InChild]:
    """Return a caller of functions, each in a fork of one process that has the frontend."""
    yield from served("tensorflow")
