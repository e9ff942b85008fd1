"""Cards are asked through NVML's own binding, of a library that answers as it is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from admission.agent.problems import AgentProblem
from admission.agent.reading import Card, Use
from estimator.units import GIB
from tests.admission.agent.looking import Looker, looking
from tests.nvml.stub import (
    DRIVER_NOT_LOADED,
    LOST,
    MISMATCH,
    TIMEOUT,
    UNSUPPORTED,
    Nvml,
    card,
    client,
    compiled,
    fail,
    instance,
    process,
)

ONE = card("GPU-1", total=16 * GIB, used=3 * GIB, reserved=GIB)
TWO = card("GPU-2", total=40 * GIB, name="NVIDIA A100")
T4 = Card(gpu="GPU-1", index="0", product="Tesla T4", total=16 * GIB, used=3 * GIB, reserved=GIB)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stub, compiled."""
    return compiled(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml(library: Path, tmp_path: Path) -> Nvml:
    """A library that knows two cards."""
    made = Nvml(library, tmp_path / "cards")
    made.say(ONE, TWO)
    return made


@pytest.fixture
def looker(nvml: Nvml) -> Iterator[Looker]:
    """Who looks at them."""
    with looking(nvml) as running:
        yield running


def test_cards_and_processes_come_and_go(nvml: Nvml, looker: Looker) -> None:
    """Each look finds what is there then; a client of MPS is a process like others."""
    first = looker.look()
    nvml.say(ONE, TWO, process("GPU-1", 7, 2 * GIB), client("GPU-2", 8, GIB))
    second = looker.look()
    nvml.say(ONE, TWO, process("GPU-1", 7, 3 * GIB))
    third = looker.look()

    assert first.cards[0] == T4
    assert [each.gpu for each in first.cards] == ["GPU-1", "GPU-2"]
    assert (first.uses, first.problems) == ((), {})
    assert second.uses == (
        Use(pid=7, gpu="GPU-1", nbytes=2 * GIB),
        Use(pid=8, gpu="GPU-2", nbytes=GIB),
    )
    assert third.uses == (Use(pid=7, gpu="GPU-1", nbytes=3 * GIB),)


def test_card_that_is_cut_is_its_instances(nvml: Nvml, looker: Looker) -> None:
    """Also one that is cut while we run, within half a minute."""
    assert len(looker.look().cards) == 2

    nvml.say(
        ONE,
        TWO,
        instance(1, "MIG-1", number=7, total=5 * GIB, used=GIB),
        instance(1, "MIG-2", number=9, total=10 * GIB),
        process("MIG-1", 7, GIB),
    )
    found = looker.look(after=30)

    assert [(each.gpu, each.index, each.instance) for each in found.cards] == [
        ("GPU-1", "0", ""),
        ("MIG-1", "1", "7"),
        ("MIG-2", "1", "9"),
    ]
    assert found.cards[1].total == 5 * GIB
    assert found.uses == (Use(pid=7, gpu="MIG-1", nbytes=GIB),)
    assert found.problems == {}


def test_memory_that_is_not_told_is_a_problem_and_no_number(nvml: Nvml, looker: Looker) -> None:
    """As in a container that does not share the host's processes."""
    nvml.say(ONE, process("GPU-1", 7, -1), process("GPU-1", 8, GIB))

    found = looker.look()

    assert found.uses == (
        Use(pid=7, gpu="GPU-1", nbytes=None),
        Use(pid=8, gpu="GPU-1", nbytes=GIB),
    )
    assert list(found.problems) == [AgentProblem.PROCESSES_UNKNOWN]


@pytest.mark.parametrize(
    ("error", "problem"),
    [(LOST, AgentProblem.CARD_LOST), (TIMEOUT, AgentProblem.CARD_UNREADABLE)],
)
def test_card_that_fails_costs_that_card_alone(
    nvml: Nvml, looker: Looker, error: int, problem: AgentProblem
) -> None:
    """And is back a few seconds after it is well: a lost one needs the library opened anew."""
    looker.look()
    nvml.say(ONE, TWO, process("GPU-2", 7, GIB), fail("GPU-1", error))
    wrong = looker.look()
    nvml.say(ONE, TWO)
    again = looker.look(after=5)

    assert [each.gpu for each in wrong.cards] == ["GPU-2"]
    assert wrong.uses == (Use(pid=7, gpu="GPU-2", nbytes=GIB),)
    assert list(wrong.problems) == [problem]
    assert "GPU-1" in wrong.problems[problem]
    assert [each.gpu for each in again.cards] == ["GPU-1", "GPU-2"]
    assert again.problems == {}


def test_card_that_is_lost_at_the_start_is_named(nvml: Nvml, looker: Looker) -> None:
    """It has no UUID to be named by: its number does."""
    nvml.say(ONE, TWO, fail("GPU-1", LOST))

    found = looker.look()

    assert [each.gpu for each in found.cards] == ["GPU-2"]
    assert found.problems[AgentProblem.CARD_LOST].startswith("card 0: ")


def test_processes_that_cannot_be_listed_leave_the_card(nvml: Nvml, looker: Looker) -> None:
    """What the card holds is known all the same."""
    functions = [f"nvmlDeviceGetComputeRunningProcesses_v{number}" for number in (2, 3)]
    nvml.say(ONE, *(fail("GPU-1", UNSUPPORTED, each) for each in functions))

    found = looker.look()

    assert found.cards == (T4,)
    assert list(found.problems) == [AgentProblem.PROCESSES_UNKNOWN]


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (DRIVER_NOT_LOADED, AgentProblem.NVML_REFUSED),
        (MISMATCH, AgentProblem.NVML_MISMATCH),
    ],
)
def test_driver_that_is_not_there_is_asked_again(
    nvml: Nvml, looker: Looker, error: int, problem: AgentProblem
) -> None:
    """After a pause that grows: opening the library is no small thing."""
    nvml.say(("init", error))
    wrong = looker.look()
    nvml.say(ONE)
    paused = looker.look(after=0.5)
    again = looker.look(after=0.5)

    assert list(wrong.problems) == [problem]
    assert paused == wrong
    assert again.cards == (T4,)
    assert again.problems == {}


def test_driver_that_goes_while_we_run_is_waited_for(nvml: Nvml, looker: Looker) -> None:
    """A card says so; the library is closed, and opened again."""
    looker.look()
    nvml.say(ONE, fail("GPU-1", DRIVER_NOT_LOADED))
    wrong = looker.look()
    nvml.say(ONE)
    again = looker.look(after=1)

    assert (wrong.cards, list(wrong.problems)) == ((), [AgentProblem.NVML_REFUSED])
    assert again.cards == (T4,)


def test_older_driver_is_asked_in_its_own_words(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """Before R510: no list of MPS clients by the new call, and the reservation counts as used."""
    old = Nvml(compiled(tmp_path_factory.mktemp("old"), is_old=True), tmp_path / "cards")
    old.say(ONE, process("GPU-1", 7, GIB))

    with looking(old) as looker:
        found = looker.look()

    assert found.cards == (replace(T4, used=(3 + 1) * GIB, reserved=None),)
    assert found.uses == (Use(pid=7, gpu="GPU-1", nbytes=GIB),)
    assert found.problems == {}


def test_missing_library_is_named_and_found_later(library: Path, tmp_path: Path) -> None:
    """A driver that is installed under us is taken up."""
    nvml = Nvml(tmp_path / "empty", tmp_path / "cards")
    nvml.folder.mkdir()
    nvml.say(ONE)
    with looking(nvml) as looker:
        wrong = looker.look()
        (nvml.folder / "libnvidia-ml.so.1").symlink_to(library / "libnvidia-ml.so.1")
        again = looker.look(after=1)

    assert list(wrong.problems) == [AgentProblem.NVML_MISSING]
    assert again.cards == (T4,)
