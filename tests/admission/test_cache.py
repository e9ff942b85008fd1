"""The cache forgets the least recently used, and what is past its time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from admission.cache import Cache, Retention
from estimator.errors import EstimateTimeoutError


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_value_is_kept_until_room_is_needed() -> None:
    """Of three values in a cache of two, the one not used since the start is gone."""
    cache: Cache[str, int] = Cache(entries=2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")

    cache.put("c", 3)

    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_value_with_a_time_is_forgotten_after_it() -> None:
    """A failure kept for ten seconds is there after nine and gone after ten."""
    clock = Clock()
    cache: Cache[str, int] = Cache(entries=2, clock=clock)
    cache.put("failure", 1, seconds=10)
    cache.put("answer", 2)

    clock.now = 9
    assert cache.get("failure") == 1
    clock.now = 10

    assert cache.get("failure") is None
    assert cache.get("answer") == 2
    assert len(cache) == 1


def test_new_value_takes_the_place_of_an_old_one() -> None:
    """An answer after a failure stays, whatever time the failure had."""
    clock = Clock()
    cache: Cache[str, int] = Cache(entries=2, clock=clock)
    cache.put("a", 1, seconds=10)

    cache.put("a", 2)
    clock.now = 100

    assert cache.get("a") == 2


@given(st.lists(st.integers(0, 30), max_size=100), st.integers(1, 10))
def test_cache_never_holds_more_than_its_bound(keys: list[int], entries: int) -> None:
    """Whatever comes, the last one put is there and the bound holds."""
    cache: Cache[int, int] = Cache(entries=entries)

    for key in keys:
        cache.put(key, key)

    assert len(cache) == min(entries, len(set(keys)))
    assert all(cache.get(key) == key for key in keys[-1:])


def test_timeout_is_remembered_twice_as_long_each_time() -> None:
    """Up to the time of any failure of ours; a setting longer than that stands."""
    slow = EstimateTimeoutError("too slow")
    memory = Retention(timeout_failure_seconds=100, failure_seconds=300)
    patient = Retention(timeout_failure_seconds=500, failure_seconds=300)

    assert [memory.seconds(slow, before=before) for before in (None, 100, 200)] == [100, 200, 300]
    assert patient.seconds(slow, before=500) == 500


def test_smaller_cache_forgets_at_once_and_a_larger_one_nothing() -> None:
    """The least recently used go first."""
    cache: Cache[str, int] = Cache(entries=3)
    for number, key in enumerate("abc"):
        cache.put(key, number)

    cache.resize(2)
    cache.resize(3)
    cache.put("d", 3)

    assert [cache.get(key) for key in "abcd"] == [None, 1, 2, 3]
