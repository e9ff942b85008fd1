"""How a TensorFlow job's allocator is set up."""

from __future__ import annotations

import pytest

from estimator.allocators.bfc import BfcAllocator
from estimator.allocators.tensorflow import bfc_policy, reserve_of
from estimator.spec.training import Runtime
from estimator.units import GIB, MIB


def runtime(**values: object) -> Runtime:
    """Return the run time of a job."""
    return Runtime.model_validate(values)


def test_by_default_the_pool_takes_the_card_less_a_reserve() -> None:
    """TensorFlow does not grow unless it is told to."""
    policy, unknowns = bfc_policy(runtime(), capability=(8, 0))

    assert policy.preallocated(40 * GIB, beside=400 * MIB) == 40 * GIB - 400 * MIB - 1536 * MIB
    assert policy.limit(40 * GIB, beside=400 * MIB) == policy.preallocated(
        40 * GIB, beside=400 * MIB
    )
    assert unknowns == ()


@pytest.mark.parametrize(
    ("values", "grows"),
    [
        ({"allowGrowth": True}, True),
        ({"env": {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}}, True),
        ({"env": {"TF_FORCE_GPU_ALLOW_GROWTH": "TRUE"}}, True),
        ({"allowGrowth": True, "env": {"TF_FORCE_GPU_ALLOW_GROWTH": "false"}}, False),
        ({"env": {"TF_FORCE_GPU_ALLOW_GROWTH": "1"}}, False),
    ],
)
def test_the_variable_beats_what_the_program_says(values: dict[str, object], grows: bool) -> None:
    """Only `true` and `false` are words TensorFlow knows; a pool that grows takes nothing."""
    policy, _ = bfc_policy(runtime(**values), capability=(8, 0))

    assert policy.settings.allow_growth is grows
    assert (policy.preallocated(GIB * 40, beside=0) is None) is grows


def test_a_word_it_does_not_know_is_named() -> None:
    """It is ignored there and told here."""
    _, unknowns = bfc_policy(runtime(env={"TF_FORCE_GPU_ALLOW_GROWTH": "yes"}), capability=(8, 0))

    assert [each.path for each in unknowns] == ["runtime.env.TF_FORCE_GPU_ALLOW_GROWTH"]


def test_another_allocator_is_an_unknown() -> None:
    """The driver's own pool has other rules."""
    _, unknowns = bfc_policy(
        runtime(env={"TF_GPU_ALLOCATOR": "cuda_malloc_async"}), capability=(8, 0)
    )

    assert [each.path for each in unknowns] == ["runtime.env.TF_GPU_ALLOCATOR"]
    assert "cuda_malloc_async" in unknowns[0].reason


def test_a_limit_of_the_job_is_all_it_takes() -> None:
    """A logical device's memory limit leaves no reserve."""
    policy, _ = bfc_policy(runtime(allocatorCapBytes=8 * GIB), capability=(8, 0))

    assert policy.limit(40 * GIB, beside=0) is None


@pytest.mark.parametrize(
    ("text", "reserve"), [("512", 512 * MIB), ("", 1536 * MIB), ("50000", 1536 * MIB)]
)
def test_a_job_may_say_what_it_leaves_to_the_system(text: str, reserve: int) -> None:
    """In MiB; nothing is no answer, and more than is free is not listened to."""
    values = runtime(env={"TF_DEVICE_MIN_SYS_MEMORY_IN_MB": text})

    policy, unknowns = bfc_policy(values, capability=(8, 0))

    assert policy.limit(40 * GIB, beside=0) == 40 * GIB - reserve
    assert unknowns == ()


@pytest.mark.parametrize("text", ["-1", "half", "9" * 400])
def test_a_reserve_that_is_no_number_is_named(text: str) -> None:
    """TensorFlow ignores it too."""
    values = runtime(env={"TF_DEVICE_MIN_SYS_MEMORY_IN_MB": text})

    policy, unknowns = bfc_policy(values, capability=(8, 0))

    assert policy.limit(40 * GIB, beside=0) == 40 * GIB - 1536 * MIB
    assert [each.path for each in unknowns] == ["runtime.env.TF_DEVICE_MIN_SYS_MEMORY_IN_MB"]


def test_collection_of_free_regions_can_be_turned_off() -> None:
    """By the variable its own warning names."""
    policy, _ = bfc_policy(
        runtime(env={"TF_ENABLE_GPU_GARBAGE_COLLECTION": "false"}), capability=(8, 0)
    )

    assert not policy.settings.garbage_collection
    assert isinstance(policy.allocator(capacity=GIB), BfcAllocator)


@pytest.mark.parametrize(
    ("free", "capability", "mib"),
    [(GIB, 8, 225), (8 * GIB, 6, 500), (8 * GIB, 7, 1050), (8 * GIB, 8, 1536), (8 * GIB, 9, 1800)],
)
def test_the_reserve_follows_the_card(free: int, capability: int, mib: int) -> None:
    """Older and smaller cards keep less for the system."""
    assert reserve_of(free, capability) == mib * MIB
