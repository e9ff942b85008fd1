"""One process of MXNet for all tests that ask it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.estimator.frontends.mxnet.environment import oracle_python
from tests.estimator.frontends.mxnet.oracle import Oracle


@pytest.fixture(scope="package")
def oracle() -> Iterator[Oracle]:
    """Return MXNet, installed first if it is not."""
    found = Oracle(oracle_python())
    yield found
    found.close()
