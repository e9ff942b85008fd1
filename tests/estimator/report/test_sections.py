"""An account in words and tables."""

from __future__ import annotations

import pytest

from estimator.allocators.ledger import Cause, Dealing
from estimator.pipeline import Job
from estimator.report.job import account_on
from estimator.report.markdown import markdown, table
from estimator.report.records import JobAccount
from estimator.report.sections import MEANINGS, Section, mebibytes, sections_of, title_of
from estimator.units import GIB, MIB
from tests.estimator.stub import StubFrontend, card, spec_of


def found() -> JobAccount:
    """Return the account of the stub's job: 64 + 256 + 256 + 64 MiB."""
    return account_on(Job(spec=spec_of(8), frontend=StubFrontend()), card())


def section(title: str) -> Section:
    """Return the section whose title begins so."""
    return next(each for each in sections_of(found(), top=2) if each.title.startswith(title))


def test_the_title_names_job_and_card() -> None:
    """As an estimate does."""
    assert title_of(found()) == "stub, batch 8, fp32, train on card"


def test_the_short_version_says_how_much_of_it_and_why() -> None:
    """640 MiB, all of them alive in the backward pass."""
    text = " ".join(section("In short").sentences)

    assert "holds 0.62 GiB at most; it took them from the driver in 4 takings" in text
    assert "Most is alive in step 1, backward, aten.mul in layer: 0.62 GiB, 100 %" in text
    assert "40 % of what was taken is for" in text


def test_the_parts_are_shown_beside_each_other() -> None:
    """Where most is alive and after the last taking, which here are one moment."""
    assert section("How reserved splits").rows == (
        ("activations", "256.0", "256.0"),
        ("temporary", "256.0", "256.0"),
        ("gradients", "64.0", "64.0"),
        ("parameters", "64.0", "64.0"),
        ("reserved", "640.0", "640.0"),
    )


def test_phases_are_in_the_order_of_the_run() -> None:
    """The second step takes nothing and is left out."""
    assert section("When it was taken").rows == (
        ("load", "parameters 64.0", "1", "64.0", "0.0", "64.0"),
        ("step 1, forward", "activations 256.0", "1", "256.0", "0.0", "320.0"),
        ("step 1, backward", "temporary 256.0, gradients 64.0", "2", "320.0", "0.0", "640.0"),
    )


def test_only_the_largest_takings_are_listed() -> None:
    """Two of four, the earlier of equals first."""
    shown = section("The 2 largest takings of 4")

    assert [(row[1], row[5]) for row in shown.rows] == [
        ("activations", "256.0"),
        ("temporary", "256.0"),
    ]
    assert {row[2] for row in shown.rows} == {"nothing free in its pool"}


def test_segments_are_told_by_what_they_were_taken_for() -> None:
    """Segments, bytes, live, lost, idle."""
    rows = section("What the segments hold").rows

    assert rows[0] == ("activations", "forward", "1", "256.0", "256.0", "0.0", "0.0")


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0.0"), (512, "< 0.1"), (MIB, "1.0"), (GIB + MIB // 2, "1,024.5")],
)
def test_sizes_are_mebibytes(nbytes: int, text: str) -> None:
    """What is there and would read 0.0 says that it is little."""
    assert mebibytes(nbytes) == text


def test_every_reason_has_a_meaning() -> None:
    """Each cause, and each way memory goes back."""
    taken = {Dealing.SEGMENT, Dealing.PAGES}

    assert MEANINGS.keys() == {*Cause, *Dealing} - taken


def test_a_section_is_a_heading_sentences_and_a_table() -> None:
    """Words are on the left, numbers on the right."""
    shown = Section(title="T", sentences=("A.", "B."), headings=("a", "b"), rows=(("x", "1"),))

    assert markdown([shown], level=3) == "### T\n\nA.\nB.\n\n| a | b |\n| --- | ---: |\n| x | 1 |"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a|b", "a\\|b"),
        ("aten.native_batch_norm", "aten.native_batch_norm"),
        ("aten._log_softmax", "aten.\\_log_softmax"),
        ("a\n<b>", "a \\<b>"),
        ("< 0.1", "< 0.1"),
    ],
)
def test_a_cell_reads_as_it_was(text: str, written: str) -> None:
    """What Markdown would take for a mark is escaped."""
    assert table(("a",), [(text,)], num_words=1).splitlines()[-1] == f"| {written} |"


def test_the_same_account_gives_the_same_text() -> None:
    """Whoever asks twice can compare."""
    pages = {markdown(sections_of(found(), top=30)) for _ in range(2)}

    assert len(pages) == 1
