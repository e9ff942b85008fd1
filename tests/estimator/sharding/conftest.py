"""The child process that has torch, shared with the frontends' tests."""

from __future__ import annotations

from tests.estimator.frontends.conftest import in_child

__all__ = ["in_child"]
