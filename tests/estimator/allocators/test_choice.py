"""Which allocator a trace gets, and what of a card it may hold."""

from __future__ import annotations

from estimator.allocators.caching import CachingAllocator
from estimator.allocators.choice import policy_of
from estimator.spec.training import Runtime
from estimator.trace import AllocatorKind
from estimator.units import GIB


def runtime(setting: str) -> Runtime:
    return Runtime.model_validate({"env": {"PYTORCH_CUDA_ALLOC_CONF": setting}})


def test_a_pytorch_job_gets_its_caching_allocator_with_its_own_settings() -> None:
    policy, unknowns = policy_of(
        AllocatorKind.CACHING,
        runtime("per_process_memory_fraction:0.5,no_such_option:1"),
        version=(2, 10),
    )
    assert isinstance(policy.allocator(), CachingAllocator)
    assert policy.limit(8 * GIB, beside=GIB) == 4 * GIB
    assert policy.preallocated(8 * GIB, beside=GIB) is None
    assert "no_such_option" in unknowns[0].reason


def test_without_a_fraction_the_whole_card_is_the_allocators() -> None:
    policy, _ = policy_of(AllocatorKind.CACHING, Runtime(), version=(2, 10))
    assert policy.limit(8 * GIB, beside=0) is None
