"""`-o html` and `-o picture`: what is shown of an estimate and of judged manifests."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from rich.console import Console

from admission.cli import main
from admission.codes import Mode, Verdict
from admission.commands.drawing import Drawn, drawn_units
from admission.commands.picture import (
    Shown,
    changes_of,
    estimate_page,
    explained_page,
    write_page,
)
from admission.commands.picture_text import HEIGHT, LETTERS, print_page, run_text, tree_text
from admission.decision import Change, Policy
from admission.judge.conclusion import conclude
from admission.values import Judgement
from estimator.device import Device
from estimator.errors import TraceError
from estimator.report.drawing import JobDrawing
from estimator.report.page.content import Page, Tone
from estimator.report.page.figures import BESIDE, CACHED, ROLES
from estimator.result import Fit, Knob
from estimator.units import GIB
from estimator.workers.api import Job
from tests.builders import judged, node_class, spec_document, unit, verdict_on, workload
from tests.estimator.report.pages import hostile_drawing, long_drawing, plain_drawing


class Artist:
    """Draws the same for everybody, or fails; remembers what it was asked."""

    def __init__(self, drawing: JobDrawing | None) -> None:
        self.drawing = drawing
        self.asked: list[tuple[Device, ...]] = []

    async def draw(self, _: Job, devices: Sequence[Device], /) -> JobDrawing:
        """Return the drawing."""
        self.asked.append(tuple(devices))
        if self.drawing is None:
            raise TraceError("the worker ended")
        return self.drawing


def judgement(*roles: str) -> Judgement:
    """Return a judged workload with a unit for each of *roles*."""
    cards = [node_class("Tesla-T4", budget=14 * GIB), node_class("A100", budget=40 * GIB)]
    classes = [verdict_on(card, least=GIB) for card in cards]
    units = [judged(Verdict.FITS, *classes, reason="enough", of=unit(role=role)) for role in roles]
    submitted = workload(*(found.unit for found in units))
    return conclude(submitted, units, policy=Policy(mode=Mode.ENFORCE), change=Change())


def shown(page: Page, *, width: int = 100) -> str:
    """Return what a person sees on a terminal."""
    file = io.StringIO()
    print_page(page, Console(file=file, width=width))
    return file.getvalue()


def test_an_estimate_has_its_verdict_on_the_drawn_card_and_every_card() -> None:
    """The middle card is the smallest that holds the job."""
    page = estimate_page(Drawn(drawing=plain_drawing()))

    (part,) = page.parts
    assert part.title == "stub, batch 8, fp32, train"
    assert (part.tone, part.verdict) == (Tone.FITS, "fits")
    assert "middle gives 8.0 GiB" in part.message
    assert [(card.name, card.verdict) for card in part.cards] == [
        ("small", "tight"),
        ("middle", "fits"),
        ("large", "fits"),
    ]


def test_what_would_fit_is_said_change_by_change() -> None:
    """The largest batch, unless it is among the knobs; if nothing was found, what was tried."""
    device = plain_drawing().estimate.device
    knob = Knob(path="training.precision", value="bf16", text="precision bf16")
    batch = Knob(path="input.batchSize", value=4, text="batch size 4")

    def changes(largest: int | None, *knobs: Knob) -> tuple[str, ...]:
        return changes_of(
            Fit(device=device, largest_batch=largest, knobs=knobs, searched=("batch size",))
        )

    assert changes(4, knob) == (
        "batch size 4 (input.batchSize: 4)",
        "precision bf16 (training.precision: bf16)",
    )
    assert changes(4, batch) == ("batch size 4 (input.batchSize: 4)",)
    assert changes(None) == ("no single change of those tried makes it fit: batch size",)
    assert changes_of(None) == ()


async def test_units_of_one_job_are_drawn_once() -> None:
    """A master and a worker with one command are one run; each has the drawing."""
    artist = Artist(plain_drawing())

    drawn = await drawn_units(judgement("Master", "Worker"), artist)

    assert len(artist.asked) == 1
    assert len(artist.asked[0]) == 2
    assert [each.drawing is not None for each in drawn] == [True, True]


async def test_a_run_that_is_not_drawn_costs_no_verdict() -> None:
    """The page says why, and has the rest."""
    found = judgement("main")

    drawn = await drawn_units(found, Artist(None))
    (part,) = explained_page([Shown(judgement=found, drawn=drawn)]).parts

    assert part.drawing is None
    assert part.verdict == "fits"
    assert "The run is not drawn: the worker ended" in part.remarks


def test_every_unit_is_a_part_named_by_its_role() -> None:
    """With the cards it was compared with and the message of the workload."""
    found = judgement("Master", "Worker")

    page = explained_page([Shown(judgement=found, drawn=(Drawn(),), remarks=("steered",))])

    assert [part.title.split()[-1] for part in page.parts] == ["Master", "Worker"]
    assert [card.name for card in page.parts[0].cards] == ["Tesla-T4", "A100"]
    assert page.parts[0].message.lower().startswith(found.message[:20].lower())
    assert "steered" in page.parts[1].remarks


def test_a_workload_without_units_has_a_part() -> None:
    """One that asks for no GPU."""
    found = conclude(workload(), [], policy=Policy(mode=Mode.ENFORCE), change=Change())

    (part,) = explained_page([Shown(judgement=found)]).parts

    assert (part.tone, part.cards, part.drawing) == (Tone.UNKNOWN, (), None)


def test_a_page_is_not_written_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred kilobytes of HTML would bury what was there."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    with pytest.raises(click.UsageError, match="-o html > picture"):
        write_page(estimate_page(Drawn(drawing=plain_drawing())))


def test_the_text_has_the_parts_of_the_page() -> None:
    """Verdict, cards, what fills the card, the run, the tree."""
    text = shown(estimate_page(Drawn(drawing=plain_drawing())))

    for words in (
        *("fits: Needs", "small gives 1.0 GiB", "activations", "along the run"),
        *("peak: 640.0 MiB allocated", "|backward", "small ends at 1.0 GiB", "at the peak, step 1"),
        *("└──", "layer 576.0 MiB 90 %"),
    ):
        assert words in text, words


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_text_stays_within_the_terminal(width: int) -> None:
    """Rows of the run are as long as the terminal lets them be, and no longer than print."""
    drawing = long_drawing(20_000)

    rows = [line.plain for line in run_text(drawing.ranks[0], (), width=width)][:HEIGHT]

    assert all(len(row) <= width for row in rows)
    assert len({len(row) for row in rows}) == 1


def test_parts_can_be_told_without_colours() -> None:
    """A letter of its own for each."""
    letters = [LETTERS[part][0] for part in (BESIDE, *ROLES, CACHED)]

    assert len(set(letters)) == len(letters)


def test_the_column_of_the_peak_reaches_the_highest_row_that_it_fills() -> None:
    """The fullest moment of a column is drawn, however many events share it."""
    drawing = long_drawing(20_000)
    (rank,) = drawing.ranks

    rows = [line.plain for line in run_text(rank, (), width=60)]
    column = rows[HEIGHT].index("^")

    share = (rank.beside_bytes() + rank.usage.allocated_bytes) / rank.usage.device_bytes
    used = sum(row[column] not in " ." for row in rows[:HEIGHT])
    assert used == pytest.approx(share * HEIGHT, abs=1)


def test_the_tree_leaves_out_what_is_small_and_says_how_much() -> None:
    """A hundred equal layers are a few and the rest."""
    console = Console(width=100)
    with console.capture() as capture:
        console.print(tree_text(long_drawing(20_000).ranks[0].tree))

    assert " more " in capture.get()
    assert len(capture.get().splitlines()) < 120


def test_names_of_a_spec_do_not_reach_the_terminal_as_they_are() -> None:
    """Escapes, and what turns the direction of text around."""
    text = shown(estimate_page(Drawn(drawing=hostile_drawing())))

    assert not {"\x1b", "\u202e", "\u2066", "\u2028", "\x00"} & set(text)


@pytest.mark.parametrize("form", ["html", "picture"])
def test_bad_arguments_are_bad_usage(capsys: pytest.CaptureFixture[str], form: str) -> None:
    """Other commands have no picture; a missing file is bad input."""
    assert main(["estimate", "no-such-file.yaml", "-o", form]) == 2
    assert main(["explain", "no-such-file.yaml", "--gpu", "t4", "-o", form]) == 2
    assert main(["nodes", "-o", form]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.torch
@pytest.mark.slow
def test_pictures_are_made_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through worker processes, with a real model: its modules are in the page and in the text."""
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec_document(batch_size=2)))

    assert main(["estimate", str(path), "--gpu", "t4", "-o", "html"]) == 0
    page = capsys.readouterr().out

    planned = tmp_path / "mxnet.json"
    planned.write_text(
        json.dumps(
            {
                "framework": "mxnet",
                "model": {"source": "mxnet", "name": "resnet18_v1"},
                "input": {"batchSize": 2},
            }
        )
    )
    assert main(["estimate", str(planned), "--gpu", "t4", "-o", "picture"]) == 0
    text = capsys.readouterr().out

    example = Path(__file__).parents[3] / "deploy/examples/resnet50-b64.yaml"
    assert main(["explain", str(example), "--gpu", "t4", "--offline", "-o", "picture"]) == 0
    explained = capsys.readouterr().out

    assert "team-vision/resnet50-b64" in explained
    assert "along the run" in explained
    assert page.startswith("<!doctype html>")
    assert "layer4" in page
    assert "layer4" in explained
    assert "resnet18_v1, batch 2" in text
    assert "along the run" in text
