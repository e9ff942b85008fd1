"""The allocator of a JAX job follows its environment."""

from __future__ import annotations

import pytest

from estimator.allocators.xla_client import XlaClientPolicy, xla_client_policy
from estimator.errors import SpecError, UnsupportedJobError

GIB = 1 << 30


def test_three_quarters_are_taken_at_the_start_by_default() -> None:
    """And never more: the share is the limit too."""
    policy = xla_client_policy({})

    assert policy.preallocated(40 * GIB, beside=GIB) == 30 * GIB
    assert policy.limit(40 * GIB, beside=GIB) == 30 * GIB


@pytest.mark.parametrize("name", ["XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"])
def test_the_share_is_settable_by_both_names(name: str) -> None:
    """`.9` is how people write it."""
    assert xla_client_policy({name: ".9"}) == XlaClientPolicy(fraction=0.9)


@pytest.mark.parametrize("word", ["false", "False", "0"])
def test_a_pool_that_grows_takes_nothing_at_the_start(word: str) -> None:
    """Its limit stays."""
    policy = xla_client_policy({"XLA_PYTHON_CLIENT_PREALLOCATE": word})

    assert policy.preallocated(40 * GIB, beside=0) is None
    assert policy.limit(40 * GIB, beside=0) == 30 * GIB


def test_the_platform_allocator_has_no_pool() -> None:
    """What dies goes back at once."""
    policy = xla_client_policy({"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"})

    allocator = policy.allocator(capacity=100)
    assert allocator.allocate(1, 80)
    allocator.free(1)
    assert allocator.reserved == 0
    assert policy.limit(40 * GIB, beside=0) is None
    assert policy.preallocated(40 * GIB, beside=0) is None


def test_one_arena_fits_a_pool_of_its_size() -> None:
    """The pool is one region: nothing is in its way."""
    allocator = xla_client_policy({}).allocator(capacity=4 * GIB)

    assert allocator.allocate(1, GIB)
    assert allocator.allocate(2, 3 * GIB)
    assert not allocator.allocate(3, 256)


@pytest.mark.parametrize(
    "environment",
    [
        {"XLA_CLIENT_MEM_FRACTION": "most"},
        {"XLA_CLIENT_MEM_FRACTION": "0"},
        {"XLA_CLIENT_MEM_FRACTION": "nan"},
        {"XLA_CLIENT_MEM_FRACTION": ".5", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"},
        {"XLA_PYTHON_CLIENT_ALLOCATOR": "mine"},
    ],
)
def test_what_jax_would_not_take_is_an_error(environment: dict[str, str]) -> None:
    """JAX ends at it, or takes it for nothing."""
    with pytest.raises(SpecError, match=r"runtime\.env"):
        xla_client_policy(environment)


@pytest.mark.parametrize("kind", ["cuda_async", "vmm"])
def test_other_allocators_are_unknown_by_name(kind: str) -> None:
    """The driver's pool has rules of its own."""
    with pytest.raises(UnsupportedJobError, match=kind):
        xla_client_policy({"XLA_PYTHON_CLIENT_ALLOCATOR": kind})
