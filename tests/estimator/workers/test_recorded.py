"""Recorded jobs are estimated by forks of a template that imports no framework."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from estimator.errors import SpecError
from estimator.frontends.recorded import Recorded
from estimator.pipeline import Job
from estimator.trace import Kernel, TraceBuilder
from estimator.tracefile import Recording, recorded
from estimator.traits import traits_of
from estimator.units import GIB
from estimator.workers import wire
from estimator.workers.pool import Workers
from tests.estimator.stub import StubFrontend, card, spec_of


@pytest.fixture
async def real_workers() -> AsyncIterator[Workers]:
    """Workers with the real templates, without a cuDNN."""
    pool = Workers(max_concurrent=1, cudnn=())
    yield pool
    await pool.close()


def recording_of(*kernels: Kernel) -> Recording:
    """Return the stub's job, or one that only calls *kernels*, recorded."""
    trace = StubFrontend().trace_job(spec_of(8), traits=traits_of(card()))
    if kernels:
        builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
        for kernel in kernels:
            builder.kernel(kernel)
        trace = builder.build()
    return recorded(spec_of(8), traits=traits_of(card()), trace=trace)


async def test_a_recording_is_estimated_and_accounted_for(real_workers: Workers) -> None:
    """The answer is that of the pipeline; PyTorch's template was never started."""
    recording = recording_of()

    (found,) = await real_workers.estimate(recording, [card()])
    (account,) = await real_workers.account(recording, [card()])

    expected = Job(spec=recording.spec, frontend=Recorded(recording=recording)).on(card())
    assert found == expected.model_copy(update={"elapsed_seconds": found.elapsed_seconds})
    assert account.usage == expected.peak
    assert "torch" not in _loaded(real_workers.pids()[0])


async def test_a_recording_is_drawn(real_workers: Workers) -> None:
    """Its estimates are those of the pipeline, its run that of the smallest card that holds it."""
    recording = recording_of()
    cards = [card(80 * GIB, name="large"), card(8 * GIB, name="small")]

    found = await real_workers.draw(recording, cards)

    job = Job(spec=recording.spec, frontend=Recorded(recording=recording))
    assert [each.peak for each in found.estimates] == [job.on(device).peak for device in cards]
    assert found.estimate.device.name == "small"
    assert [rank.usage for rank in found.ranks] == [found.estimate.peak]
    assert [each.name for each in found.ranks[0].tree.children] == ["layer", "parameters"]


def _loaded(pid: int) -> str:
    """Return what libraries a process has loaded."""
    return Path(f"/proc/{pid}/maps").read_text()


async def test_kernels_that_no_rule_understands_are_the_files_fault(
    real_workers: Workers,
) -> None:
    """A library call without its operands is a problem of the file, not of the estimator."""
    recording = recording_of(Kernel(operator="aten.sort", operands=()))

    with pytest.raises(SpecError, match=r"trace.kernels: no library is called like this"):
        await real_workers.estimate(recording, [card()])


def test_a_recording_travels_with_its_request() -> None:
    """The fork gets the bytes of the file, and the spec as it was stated anew."""
    recording = recording_of()
    ask = wire.Ask(
        operation=wire.Operation.ESTIMATE,
        spec=recording.spec,
        devices=(card(),),
        content=recording.content,
    )

    assert wire.decode_ask(wire.encode_ask(ask)) == ask
    assert wire.decode_ask(wire.encode_ask(replace(ask, content=None))).content is None
