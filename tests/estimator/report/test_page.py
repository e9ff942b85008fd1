"""The page as text: what is in it, what cannot get out of it."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.report.drawing import Span
from estimator.report.page.content import Page, Part, Tone
from estimator.report.page.document import page_html
from estimator.report.page.figures import (
    Axis,
    Scale,
    bands_of,
    parts_of,
    percent,
    size,
    span,
)
from estimator.report.page.markup import Markup, data, element, shown
from estimator.units import GIB, KIB, MIB
from tests.estimator.report.pages import (
    HOSTILE,
    hostile_drawing,
    long_drawing,
    page_of,
    plain_drawing,
)

MAX_PAGE = 2_000_000
"""Bytes that a page may have."""


class Reader(HTMLParser):
    """Collects what a page is made of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_has_every_part_of_the_picture() -> None:
    """The verdict, what fills the card, the run, the modules, tables, what it rests on."""
    page = page_html(page_of(plain_drawing()))

    text = " ".join(Reader(page).texts)
    for words in (
        *("What to change:", "What fills middle", "Along the run", "peak: 640.0 MiB allocated"),
        *("step 1", "backward", "Above the chart", "Who holds it at the peak", "layer"),
        *("The run as a table", "The modules as a table", "The largest tensors", "The cards"),
        *("The ranks", "What this rests on", "Assumed", "words"),
    ):
        assert words in text, words
    assert page == page_html(page_of(plain_drawing())), "the same job is the same page"


def test_the_policy_names_exactly_what_is_in_the_page() -> None:
    """A browser runs our script and style by their digests, and nothing else."""
    page = page_html(page_of(plain_drawing()))

    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    for tag, kind in (("script", "script-src"), ("style", "style-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        digest = b64encode(sha256(content.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy[1]
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]


def test_nothing_in_the_page_is_elsewhere() -> None:
    """No address but ones within the page, no handlers, no styles in attributes."""
    reader = Reader(page_html(page_of(plain_drawing())))

    for tag, name, value in reader.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("style", "src", "srcset", "action", "xlink:href"), (tag, name)
        if name == "href":
            assert value is not None
            assert value.startswith("#") or (tag, value) == ("link", "data:,")
    assert not {"img", "iframe", "object", "embed", "form", "base", "image", "use"} & set(
        reader.tags
    )
    for asset in ("style.css", "script.js"):
        text = files("estimator.report.page").joinpath(asset).read_text()
        for word in ("http:", "https:", "url(", "@import", "innerHTML", "eval(", "fetch("):
            assert word not in text, (asset, word)


@pytest.mark.parametrize("words", HOSTILE)
def test_names_are_text_whatever_they_hold(words: str) -> None:
    """Names of jobs, cards, models, modules and operators, paths and reasons."""
    plain, hostile = plain_drawing(), hostile_drawing()

    page = page_html(page_of(hostile, title=words, words=words))

    reader, usual = Reader(page), Reader(page_html(page_of(plain)))
    assert set(reader.tags) == set(usual.tags)
    assert {name for _, name, _ in reader.attributes} == {name for _, name, _ in usual.attributes}
    assert page.count("<script") == 2
    assert not re.search("[\u200b\u2028-\u202e\u2066\x00\x1b\ud800]", page)
    page.encode()


@given(st.text())
def test_any_text_is_escaped_and_stays_on_its_line(text: str) -> None:
    """As content, as an attribute, and as data of a script."""
    reader = Reader(str(element("p", text, title=text)))

    assert reader.tags == ["p"]
    assert [name for _, name, _ in reader.attributes] == ["title"]
    assert "".join(reader.texts) == shown(text) == (reader.attributes[0][2] or "")
    assert not set("<>&\u2028\u2029") & set(data([shown(text)]))


def test_what_is_invisible_is_seen() -> None:
    """Two names that differ only in a character without a shape look different."""
    assert shown("tra\u200bin") == "tra\N{REPLACEMENT CHARACTER}in"
    assert shown("a\nb\t c") == "a b c"
    assert shown("e\u0301") == "e\u0301"
    assert len(shown("e" + "\u0301" * 50)) == 3
    assert shown("x" * 900, limit=10) == "xxxxxxxxx…"


def test_markup_is_only_what_we_made() -> None:
    """A text that looks like an element is none; attributes may be absent."""
    assert element("b", "<i>", Markup("<i>"), hidden=True, id=None, aria_label="a & b") == (
        '<b hidden aria-label="a &amp; b">&lt;i&gt;<i></b>'
    )


def test_a_long_run_is_a_small_page() -> None:
    """200,000 events."""
    drawing = long_drawing()
    assert drawing.ranks[0].timeline.num_events > 195_000

    assert len(page_html(page_of(drawing)).encode()) < MAX_PAGE


def test_a_page_of_many_jobs_is_bounded_and_says_so() -> None:
    """What is not drawn has its verdict; the first ones are drawn, with fewer samples each."""
    drawing = long_drawing(50_000)
    parts = tuple(
        Part(title=f"job {index}", tone=Tone.OOM, verdict="no", message="m", drawing=drawing)
        for index in range(40)
    )

    page = page_html(Page(title="jobs", parts=parts, version="0"))

    num_drawn = page.count('<figure class="run"')
    assert len(page.encode()) < MAX_PAGE
    assert num_drawn > 5
    assert page.count("Not drawn") == 40 - num_drawn


def test_a_page_without_drawings_has_the_verdicts() -> None:
    """A job that could not be read."""
    part = Part(title="a", tone=Tone.UNKNOWN, verdict="unknown", message="not read")

    page = page_html(Page(title="jobs", parts=(part,), version="0"))

    assert "not read" in page
    assert "<svg" not in page


def test_several_ranks_are_drawn_each() -> None:
    """Stages of a pipeline differ."""
    drawing = plain_drawing()
    second = drawing.ranks[0].model_copy(update={"rank": 4, "stage": 1})
    drawing = drawing.model_copy(update={"ranks": (drawing.ranks[0], second)})

    text = " ".join(Reader(page_html(page_of(drawing))).texts)

    assert "Along the run, rank 0 (stage 0)" in text
    assert "Along the run, rank 4 (stage 1)" in text


def test_figures_read_as_people_write_them() -> None:
    """Needs are rounded up; a share of something is never nothing."""
    assert (size(GIB + 1), size(3 * MIB), size(1)) == ("1.1 GiB", "3.0 MiB", "1 KiB")
    assert (percent(1, 1000), percent(0, 10), percent(1, 0)) == ("< 1 %", "0 %", "–")
    assert span(9 * GIB, 10 * GIB) == "9.0–10.0 GiB"
    assert span(900 * MIB, GIB) == "900.0 MiB – 1.0 GiB"
    assert span(GIB, GIB + KIB - KIB) == "1.0 GiB"


def test_loading_is_squeezed_and_steps_are_not() -> None:
    """A compiled step of three events behind a thousand weights is most of the chart."""
    spans = (Span(step=0, phase="load", first=0), Span(step=1, phase="backward", first=1000))
    whole = plain_drawing().ranks[0].timeline
    axis = Axis.of(whole.model_copy(update={"num_events": 1003, "spans": spans}))

    assert [axis.share(event) for event in (0, 500, 1000, 1003)] == [0, 1 / 16, 1 / 8, 1]
    assert axis.share(1001) == pytest.approx(1 / 8 + 7 / 24)


def test_an_axis_of_loading_alone_is_whole() -> None:
    """Nothing is squeezed where nothing else is."""
    axis = Axis(num_events=8, num_loading=0)

    assert [axis.share(event) for event in (0, 4, 8)] == [0, 0.5, 1]


def test_bands_sum_to_what_is_on_the_card() -> None:
    """Beside the allocator, live by role, cached; communication has its library's part."""
    (rank,) = plain_drawing().ranks
    rank = rank.model_copy(update={"communication_bytes": 300 * MIB})

    bands = bands_of(rank)

    for sample, held in enumerate(rank.timeline.reserved):
        assert sum(parts_of(rank, sample).values()) == held + rank.beside_bytes()
    assert set(bands["communication"]) == {300 * MIB}
    assert next(iter(bands)) == "beside"
    assert list(bands)[-1] == "cached"


@given(st.integers(1, 10**13))
def test_an_axis_has_few_round_ticks(top: int) -> None:
    """From a byte to terabytes."""
    ticks = Scale(top=top).ticks()

    assert len(ticks) <= 5
    assert all(0 < tick < top for tick in ticks)
    assert top < 2 * MIB or ticks
