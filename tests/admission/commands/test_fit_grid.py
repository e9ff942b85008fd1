"""`vramgate fit` as a table: batch by sequence by card."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from admission.cli import main
from admission.codes import Verdict
from admission.commands.fit_grid import Grid, around, grid_document, grid_of
from admission.commands.fit_grid_table import print_grid
from estimator.catalog import resolve_device
from estimator.device import Device
from estimator.errors import TraceError
from estimator.grid import at_batch
from estimator.result import Estimate
from estimator.spec import JobSpec, parse_spec
from estimator.units import GIB, MIB
from estimator.workers.api import Job, spec_of
from tests.builders import estimate

SPEC = parse_spec(
    {
        "framework": "pytorch",
        "model": {"source": "huggingface", "name": "small", "config": {"model_type": "llama"}},
        "input": {"batchSize": 6, "sequenceLength": 1024},
    }
)
CARDS = (resolve_device("t4"), resolve_device("a100-sxm4-40gb"))
TOO_LONG = 4096


class Linear:
    """1 GiB and 1 MiB a token; nothing can be said of sequences that are too long."""

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        return tuple(self._one(spec_of(job), device) for device in devices)

    async def grid(
        self, spec: JobSpec, devices: Sequence[Device], batches: Sequence[int]
    ) -> tuple[Estimate, ...]:
        if (spec.input.sequence_length or 0) >= TOO_LONG:
            raise TraceError("too long for this model")
        jobs = [at_batch(spec, batch) for batch in batches]
        return tuple(self._one(job, device) for job in jobs for device in devices)

    def _one(self, spec: JobSpec, device: Device) -> Estimate:
        length = spec.input.sequence_length or 0
        need = GIB + spec.input.batch_size * length * MIB
        return estimate(least=need, card=device, spec=spec)


async def table(*, batches: Sequence[int] = (), lengths: Sequence[int] = ()) -> Grid:
    """Return the table of `SPEC` on both cards."""
    return await grid_of(SPEC, CARDS, Linear(), batches=batches, lengths=lengths)


async def test_each_cell_has_the_verdict_of_its_batch_sequence_and_card() -> None:
    """14.5 GiB hold 13 samples of 1,024 tokens beside 1 GiB, 39.3 GiB hold 38."""
    grid = await table(batches=(8, 16, 64), lengths=(512, 1024))

    found = {(c.length, c.batch, c.device.name): c.verdict for c in grid.cells}
    t4, a100 = (card.name for card in CARDS)
    assert len(found) == 2 * 3 * 2
    assert found[512, 16, t4] is found[1024, 8, t4] is found[1024, 16, a100] is Verdict.FITS
    assert found[1024, 16, t4] is found[1024, 64, a100] is Verdict.OOM
    assert grid.has_way


async def test_without_sizes_powers_of_two_around_the_job_are_tried() -> None:
    """What the job has is among them."""
    grid = await table()

    assert list(dict.fromkeys(cell.batch for cell in grid.cells)) == [1, 2, 4, 6, 8, 16]
    assert list(dict.fromkeys(cell.length for cell in grid.cells)) == [512, 1024, 2048]


def test_no_length_is_tried_that_the_model_has_no_positions_for() -> None:
    """The job's own stays."""
    assert around(512, most=512, steps=1) == (256, 512)
    assert around(1) == (1, 2, 4)


async def test_a_sequence_that_cannot_be_estimated_hides_no_other() -> None:
    """Its cells are unknown, with the reason."""
    grid = await table(batches=(1,), lengths=(512, TOO_LONG))

    cells = grid_document(grid)["cells"]
    assert [cell["verdict"] for cell in cells] == ["fits", "fits", "unknown", "unknown"]
    assert cells[2]["error"]["message"] == "too long for this model"
    assert cells[0]["least"] == GIB + 512 * MIB


async def test_a_job_that_cannot_be_estimated_at_all_is_an_error() -> None:
    """There is no table of unknowns."""
    with pytest.raises(TraceError, match="too long"):
        await table(batches=(1,), lengths=(TOO_LONG,))


async def test_the_text_has_a_row_a_size_and_a_column_a_card() -> None:
    """Words and needs, for people."""
    grid = await table(batches=(8, 64), lengths=(1024,))
    screen = Console(file=io.StringIO(), width=120)

    print_grid(grid, screen)

    assert isinstance(screen.file, io.StringIO)
    lines = screen.file.getvalue().splitlines()
    assert [name for name in ("t4", "a100-sxm4-40gb") if name in lines[2]]
    row = next(line for line in lines if line.split()[:2] == ["64", "1024"])
    assert row.split()[2] == "no"


@pytest.mark.parametrize("value", ["", "0", "1,x", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"])
def test_sizes_are_a_few_whole_numbers(value: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Anything else is a usage error."""
    status = main(["fit", "-", "--gpu", "t4", "--batch", value])

    assert status == 2
    assert "--batch" in capfd.readouterr().err
