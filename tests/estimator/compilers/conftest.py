"""The same child processes as the frontends' tests."""

from tests.estimator.frontends.jax_server import in_jax_child

__all__ = ["in_jax_child"]
