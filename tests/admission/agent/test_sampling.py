"""A look sums what processes hold by container and card, and says what it could not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from admission.agent.marks import Marks
from admission.agent.pods import Owner, Pod, Pods
from admission.agent.problems import AgentProblem
from admission.agent.reading import Card, Reading, Use
from admission.agent.sampling import LIST_SECONDS, LOOKS_MISSING, Sampler

ID, INNER = "a" * 64, "b" * 64
PODS = Pods(
    by_uid={"u": Pod(uid="u", namespace="n", name="p")},
    owners={ID: Owner(uid="u", container="main")},
)
CARD = Card(gpu="GPU-1", index="0", product="Tesla T4", total=1000, used=0)


class Cards:
    """A backend that says what it is told to."""

    def __init__(self, *uses: tuple[int, int | None]) -> None:
        self.problems: dict[AgentProblem, str] = {}
        self.cards: tuple[Card, ...] = (CARD,)
        self.say(*uses)

    def say(self, *uses: tuple[int, int | None]) -> None:
        """Let processes hold so much."""
        self.uses = tuple(Use(pid=pid, gpu="GPU-1", nbytes=nbytes) for pid, nbytes in uses)

    def read(self) -> Reading:
        """Say it."""
        return Reading(cards=self.cards, uses=self.uses, problems=self.problems)

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Two processes of the container, one of Docker within it, and one of the system."""
    paths = {1: f"cri-containerd-{ID}.scope", 2: f"crio-{ID}.scope"}
    paths |= {3: f"{ID}/docker/{INNER}", 4: "system.slice/sshd.service"}
    for pid, path in paths.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cgroup").write_text(f"0::/kubepods/{path}\n")
    return tmp_path


def sampler(cards: Cards, proc: Path, pods: Pods | None = PODS) -> Sampler:
    """Return who looks."""
    marks = Marks(growth=0.05, seconds=60)
    return Sampler([cards], marks, pods=lambda: pods, proc=proc)


def test_processes_of_a_container_are_summed(proc: Path) -> None:
    """Those of containers within it too; what is nobody's is a figure of its own."""
    looking = sampler(Cards((1, 100), (2, 20), (3, 3), (4, 7000), (4, None), (9, 5)), proc)

    look = looking.look(0.0)

    ((pod, peaks),) = looking.view.marks
    assert (pod.name, peaks) == ("p", {("main", "GPU-1"): 123})
    assert looking.view.unattributed == 7005
    assert look.problems == {}


def test_peaks_are_of_one_moment(proc: Path) -> None:
    """Two processes that hold the card one after the other do not add up."""
    cards = Cards((1, 100))
    looking = sampler(cards, proc)
    looking.look(0.0)
    cards.say((2, 90))
    looking.look(1.0)

    assert looking.view.marks[0][1] == {("main", "GPU-1"): 100}


def test_pods_that_are_not_listed_are_a_problem_after_a_while(proc: Path) -> None:
    """Cards are shown meanwhile."""
    looking = sampler(Cards((1, 100)), proc, pods=None)

    assert looking.look(0.0).problems == {}
    assert list(looking.look(LIST_SECONDS).problems) == [AgentProblem.PODS_UNKNOWN]
    assert looking.view.cards == (CARD,)
    assert looking.view.marks == ()


def test_processes_that_are_never_here_mean_another_namespace(proc: Path) -> None:
    """One that ends between the driver's answer and our look does not."""
    cards = Cards((901, 100))
    looking = sampler(cards, proc)
    found = [looking.look(float(second)).problems for second in range(LOOKS_MISSING)]
    cards.say((901, 100), (1, 100))
    after = looking.look(9.0).problems

    assert [list(each) for each in found] == [[]] * (LOOKS_MISSING - 1) + [
        [AgentProblem.OTHER_PIDS]
    ]
    assert after == {}


def test_node_of_another_vendor_needs_no_nvml(proc: Path) -> None:
    """A missing library is a problem only where there is no card at all."""
    cards = Cards()
    cards.problems = {AgentProblem.NVML_MISSING: "no library"}
    assert sampler(cards, proc).look(0.0).problems == {}

    cards.cards = ()
    assert list(sampler(cards, proc).look(0.0).problems) == [AgentProblem.NVML_MISSING]
