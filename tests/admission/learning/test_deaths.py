"""The deaths that are kept: bounded, the last of each job, what is read back is checked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from admission.floor import Floor
from admission.learning.deaths import (
    MAX_DAYS,
    MAX_DEATHS,
    MAX_SIZE,
    Death,
    name_of,
    read_deaths,
    text_of,
    with_death,
)
from estimator.units import GIB

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def death(name: str = "train", *, nbytes: int = 15 * GIB, at: datetime = NOW) -> Death:
    """Return the death of a Job called *name*."""
    floor = Floor(
        container="train", nbytes=nbytes, gave=14 * GIB, card="Tesla-T4", when=at.isoformat()
    )
    return Death(namespace="team", names=(f"Job.batch/{name}",), fingerprint="a..b.", floor=floor)


def test_what_is_written_is_read() -> None:
    """Whole."""
    deaths = (death("a"), death("b"))

    assert read_deaths(text_of(deaths)) == deaths


def test_of_one_job_the_last_counts_with_the_highest_floor() -> None:
    """A smaller card that it died on later teaches nothing new."""
    later = NOW + timedelta(hours=1)

    (kept,) = with_death((death(nbytes=20 * GIB),), death(at=later), now=later)

    assert kept.floor.nbytes == 20 * GIB
    assert kept.floor.when == later.isoformat()


def test_another_container_or_another_program_is_kept_beside_it() -> None:
    """They are other jobs."""
    other = replace(death(), fingerprint="c..d.")

    assert with_death((death(),), other, now=NOW) == (death(), other)


def test_what_is_old_or_too_much_goes() -> None:
    """The oldest first."""
    old = death("old", at=NOW - timedelta(days=MAX_DAYS + 1))
    deaths = tuple(death(f"j{number}") for number in range(MAX_DEATHS))

    kept = with_death((old, *deaths), death("new"), now=NOW)

    assert len(kept) == MAX_DEATHS
    assert kept[-1].names == ("Job.batch/new",)
    assert kept[0].names == ("Job.batch/j1",)


def test_its_size_is_bounded() -> None:
    """Long names leave less of them."""
    deaths: tuple[Death, ...] = ()
    for number in range(600):
        long = replace(death(f"{number}-{'x' * 500}"), fingerprint="f" * 500)
        deaths = with_death(deaths, long, now=NOW)

    assert 0 < len(text_of(deaths)) <= MAX_SIZE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"deaths": 1}',
        '{"deaths": [1, {}, {"names": []}]}',
        orjson.dumps({"deaths": [{"names": ["a"], "floorBytes": -1, "gaveBytes": 1}]}).decode(),
        orjson.dumps(
            {"deaths": [{"names": ["a"], "floorBytes": 1 << 60, "gaveBytes": 1}]}
        ).decode(),
        orjson.dumps({"deaths": [{"names": ["a"], "floorBytes": True, "gaveBytes": 1}]}).decode(),
        '{"deaths": [' + "1," * 2_000_000 + "1]}",
    ],
)
def test_nonsense_is_nothing(text: str) -> None:
    """Whoever may write the ConfigMap may write anything."""
    assert read_deaths(text) == ()


def test_generated_names_are_known_by_their_prefix() -> None:
    """The next has another name."""
    name = name_of(kind="Job", api_version="batch/v1", name="train-x7", generate_name="train-")

    assert name == "Job.batch/train-*"
