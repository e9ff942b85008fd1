"""What an earlier run taught steers and warns, and never makes a verdict `oom`."""

from __future__ import annotations

from typing import Any

import pytest

from admission.capacity.classes import classes_of
from admission.codes import Action, Mode, Verdict
from admission.decision import Policy
from admission.floor import Floor
from admission.judge.judging import judge_views
from admission.judge.views import read_views
from admission.learning.corrections import corrections_of, groups_of
from admission.learning.deaths import Death
from admission.learning.fingerprint import fingerprint
from admission.learning.floors import Learnt
from admission.values import Judgement
from admission.workloads import read_workload
from estimator.units import GIB
from tests.admission.controller.objects import job
from tests.admission.learning.test_residuals import honest
from tests.admission.steer.scene import A10, T4, nodes
from tests.admission.test_handler import FakeWorkers


async def judged(*cards: Any, nbytes: int = 16 * GIB) -> Judgement:
    """Return the judgement, in mode enforce, of a job of 10 GiB that once needed *nbytes*."""
    workload = read_workload(job(100), api_version="batch/v1")
    floor = Floor(container="train", nbytes=nbytes, gave=14 * GIB, card="Tesla-T4", when="2030")
    death = Death(
        namespace="team",
        names=("Job.batch/train",),
        fingerprint=fingerprint(workload.units[0], workload),
        floor=floor,
    )
    return await judge_views(
        workload,
        read_views(workload, classes=classes_of(nodes(cards))),
        estimator=FakeWorkers(),
        policy=Policy(mode=Mode.ENFORCE),
        learnt=Learnt((death,)),
    )


async def test_a_card_that_it_died_on_is_too_small() -> None:
    """By the estimate alone both would do."""
    found = await judged(T4, A10)

    verdicts = {each.node_class.product: each.verdict for each in found.units[0].classes}
    assert verdicts == {"Tesla-T4": Verdict.TIGHT, "NVIDIA-A10": Verdict.FITS}


@pytest.mark.parametrize("nbytes", [16 * GIB, 1 << 49])
async def test_where_no_card_is_larger_it_is_warned_and_let_in(nbytes: int) -> None:
    """Whoever mended it must not be kept out; what would fit is said, by as much less."""
    found = await judged(T4, nbytes=nbytes)

    assert found.verdict is Verdict.TIGHT
    assert found.action is Action.WARN
    assert found.hints == ("fits with batch size 50",)


async def test_people_are_told_of_the_earlier_run() -> None:
    """Also where it fits on all that is left to it."""
    found = await judged(A10)

    assert found.verdict is Verdict.FITS
    assert found.warnings == (
        "an earlier run of the same containers died of too little GPU memory on Tesla-T4, "
        "which gave it 14.0 GiB",
    )


async def test_what_was_measured_of_others_moves_the_peak_and_no_verdict() -> None:
    """The same job, with and without jobs that took a fifth more than estimated."""
    workload = read_workload(job(100), api_version="batch/v1")
    views = read_views(workload, classes=classes_of(nodes((T4,))))

    async def found(learnt: Learnt | None) -> Judgement:
        policy = Policy(mode=Mode.ENFORCE)
        return await judge_views(
            workload, views, estimator=FakeWorkers(), policy=policy, learnt=learnt
        )

    plain = (await found(None)).units[0].estimate
    assert plain is not None
    (group, *_) = groups_of(plain, plain.device.name)
    measured = Learnt(corrections=corrections_of({group: tuple(honest(1.2))}))
    after = await found(measured)

    estimate = after.units[0].estimate
    assert estimate is not None
    assert estimate.peak.device_bytes == pytest.approx(1.2 * plain.peak.device_bytes, rel=0.02)
    assert (estimate.least, estimate.enough) == (plain.least, plain.enough)
    assert after.verdict is (await found(None)).verdict
