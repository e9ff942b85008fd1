"""What a node tells the agent: answers of NVML, and control groups.

bytes -> looks -> marks, series
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from admission.agent.cgroup import container_ids
from admission.agent.marks import Marks
from admission.agent.nvml import Nvml
from admission.agent.pods import Owner, Pod, Pods
from admission.agent.sampling import View
from admission.peaks import read, written
from tests.fuzz.choices import Choices
from tests.fuzz.fake_nvml import load
from tests.fuzz.rules import check_line
from tests.fuzz.series import check_shown
from tests.fuzz.target import Broken, Target

POD = Pod(uid="u", namespace="team", name="train-0", estimate=1 << 30)
PODS = Pods(by_uid={"u": POD}, owners={"c": Owner(uid="u", container="train")})


def _run_nvml(data: bytes) -> None:
    """Look a few times at cards that answer anything."""
    choices = Choices(data)
    load(choices)
    now = [1000.0]
    cards = Nvml(clock=lambda: now[0])
    marks = Marks(growth=0.1, seconds=60.0)
    for _ in range(2):
        now[0] += 40.0
        reading = cards.read()
        totals = {card.gpu: card.total for card in reading.cards}
        list(marks.follow(PODS, now=now[0], totals=totals))
        held = {(PODS.owners["c"], use.gpu): use.nbytes or 0 for use in reading.uses}
        marks.hold(held, PODS)
        for note in marks.due(now[0]):
            if read(written(note.peaks)) != {**note.peaks} and len(note.peaks) < 100:
                _check_kept(note.peaks)
        for problem in reading.problems.values():
            check_line(problem, "a problem of the agent")
        check_shown(View(cards=reading.cards, marks=marks.rows()))
    cards.close()


def _check_kept(peaks: object) -> None:
    """Hold what is written to what is read back: only a peak beyond any card is left out."""
    assert isinstance(peaks, dict)
    if all(0 < nbytes < 1 << 50 for nbytes in peaks.values()):
        raise Broken("what is written on a pod is not read back")


def _run_cgroup(data: bytes) -> None:
    """Find containers in a text of the kernel's."""
    for each in container_ids(data.decode("utf-8", "replace")):
        if len(each) != 64:
            raise Broken("an id of another length")


def _nvml_seeds() -> Iterable[bytes]:
    yield b""
    for number in range(64):
        yield bytes((number, 2, number, 0, 1, number, 2, 3, number % 7) * 8)


def _cgroup_seeds() -> Iterator[bytes]:
    name = "ab" * 32
    yield f"0::/kubepods/burstable/pod1/{name}\n".encode()
    yield f"0::/../cri-containerd-{name}.scope\n4:memory:/x:cri-containerd:{name}\n".encode()
    yield f"0::/crio-conmon-{name}.scope\n".encode()


TARGETS = (
    Target(name="nvml", run=_run_nvml, seeds=_nvml_seeds, max_bytes=1500),
    Target(
        name="cgroup",
        run=_run_cgroup,
        seeds=_cgroup_seeds,
        max_bytes=4096,
        begins=(b"", b"0::/"),
    ),
)
