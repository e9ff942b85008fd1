"""The page in a real Chromium: light, dark, on a phone and on paper; with keys and a mouse."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from pathlib import Path

import pytest

from estimator.report.page.chart import WIDE
from estimator.report.page.content import Page
from estimator.report.page.document import page_html
from tests.estimator.report.chromium import Screen, Tab, chromium, opened_tab
from tests.estimator.report.pages import (
    HOSTILE,
    hostile_drawing,
    long_drawing,
    page_of,
    plain_drawing,
)

pytestmark = [
    pytest.mark.chromium,
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="no Chromium here: apt-get install chromium"),
]
SCREENS = {
    "light": Screen(),
    "dark": Screen(is_dark=True),
    "phone": Screen(width=360, height=740, is_phone=True),
    "small phone, dark": Screen(width=320, height=568, is_phone=True, is_dark=True),
    "paper": Screen(width=800, media="print"),
}
OUTSIDE = """
[...document.body.querySelectorAll("*")]
  .filter((each) => !each.closest(".scroll, .skip, .heard") && !each.closest("svg svg, svg g"))
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
  .map((each) => each.outerHTML.slice(0, 80))
"""
CONTRAST = """
[...document.querySelectorAll("p, li, h1, h2, h3, td, th, summary, button, a, .chip")]
  .map((each) => {
    let under = each;
    while (under && getComputedStyle(under).backgroundColor === "rgba(0, 0, 0, 0)") {
      under = under.parentElement;
    }
    return [getComputedStyle(each).color, getComputedStyle(under).backgroundColor];
  })
"""


@pytest.fixture
async def tab() -> AsyncIterator[Tab]:
    """A tab of a browser that ends with the test."""
    async with opened_tab() as found:
        yield found


async def opened(tab: Tab, page: Page, folder: Path, screen: Screen) -> None:
    """Open *page* in *tab*."""
    path = folder / "picture.html"
    path.write_text(page_html(page))
    await tab.show(path, screen)


def assert_quiet(tab: Tab) -> None:
    """Check that the page asked for nothing but itself, and complained of nothing."""
    assert all(url.startswith(("file:///", "data:,")) for url in tab.requests), tab.requests
    assert len({url for url in tab.requests if url.startswith("file:")}) == 1
    assert tab.complaints == []


def luminance(colour: str) -> float:
    """Return the relative luminance of `rgb(r, g, b)` (WCAG 2.2)."""
    found = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in found
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("screen", SCREENS.values(), ids=SCREENS.keys())
async def test_a_page_is_whole_on_every_screen(tab: Tab, tmp_path: Path, screen: Screen) -> None:
    """Nothing is wider than the screen, texts can be read, nothing is asked of anybody."""
    await opened(tab, page_of(plain_drawing(), title="team/" + "a" * 200), tmp_path, screen)
    await tab.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")

    assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await tab.evaluate(OUTSIDE) == []
    paper = await tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(paper) < 0.1) == screen.is_dark
    for ink, under in await tab.evaluate(CONTRAST):
        light, dark = sorted((luminance(ink), luminance(under)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, under)
    box = await tab.evaluate(
        "(({width, height}) => [width, height])(document.querySelector('.chart').getBBox())"
    )
    assert min(box) > 200
    assert_quiet(tab)


async def test_hostile_names_do_nothing(tab: Tab, tmp_path: Path) -> None:
    """No dialog, no element of theirs, no request; their text is there to be read."""
    page = page_of(hostile_drawing(), title=HOSTILE[0], words="".join(HOSTILE[:4]))

    await opened(tab, page, tmp_path, Screen())

    assert await tab.evaluate("document.querySelectorAll('script').length") == 2
    assert await tab.evaluate("document.querySelectorAll('img, [onload], [onerror]').length") == 0
    assert await tab.evaluate("document.querySelector('h2').textContent") == HOSTILE[0]
    assert await tab.evaluate("document.querySelectorAll('.job .run button').length") > 2
    assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert_quiet(tab)


async def test_a_script_that_is_not_ours_does_not_run(tab: Tab, tmp_path: Path) -> None:
    """The policy stands even where escaping would have failed."""
    path = tmp_path / "picture.html"
    html = page_html(page_of(plain_drawing()))
    path.write_text(html.replace("</main>", "<script>window.ran = 1</script></main>"))

    await tab.show(path, Screen())

    assert await tab.evaluate("window.ran") is None
    assert "Content Security Policy" in str(tab.complaints)


async def test_a_moment_of_the_run_can_be_read_by_keyboard(tab: Tab, tmp_path: Path) -> None:
    """The slider stands at the peak; arrow keys move along the run, the figures with it."""
    await opened(tab, page_of(plain_drawing()), tmp_path, Screen())

    peak = await tab.evaluate("document.querySelector('.at').textContent")
    assert peak.startswith("At the peak: step 1, backward, aten.mul in layer.")
    assert "Allocated 640.0 MiB" in peak
    await tab.evaluate("document.querySelector('.moment input').focus()")
    await tab.press("Home")

    first = await tab.evaluate("document.querySelector('.at').textContent")
    assert first.startswith("There: load. Allocated 64.0 MiB, reserved 64.0 MiB, on the card ")
    assert await tab.evaluate("document.querySelector('[data-part=parameters]').textContent") == (
        "64.0 MiB"
    )
    assert_quiet(tab)


async def test_a_step_can_be_looked_at_alone(tab: Tab, tmp_path: Path) -> None:
    """A button stretches one step over the width, axis and peak with it; another goes back."""
    await opened(tab, page_of(plain_drawing()), tmp_path, Screen())
    wide = "document.querySelector('.plot').getAttribute('viewBox')"
    peak = "document.querySelector('circle.peak').getAttribute('cx')"
    before = await tab.evaluate(f"[{wide}, {peak}]")

    await tab.evaluate(
        "[...document.querySelectorAll('button')].find((b) => b.textContent === 'step 1').click()"
    )
    inside = await tab.evaluate(f"[{wide}, {peak}]")
    await tab.evaluate("document.querySelector('button').click()")

    assert inside != before
    assert float(inside[0].split()[2]) == pytest.approx(WIDE * 6 / 13, rel=0.01)
    assert float(await tab.evaluate(f"parseFloat({peak})")) == pytest.approx(
        float(before[1].rstrip("%")), abs=0.01
    )
    assert_quiet(tab)


async def test_a_module_is_opened_and_left_by_keyboard(tab: Tab, tmp_path: Path) -> None:
    """Down to a child, along to a neighbour, Enter opens it, Escape goes back."""
    await opened(tab, page_of(long_drawing(20_000)), tmp_path, Screen())
    label = "document.activeElement.querySelector('title').textContent"
    width = "document.activeElement.querySelector('svg').getAttribute('width')"
    await tab.evaluate("document.querySelector('.icicle g[tabindex=\"0\"]').focus()")

    assert (await tab.evaluate(label)).startswith("allocated")
    await tab.press("ArrowDown")
    child = await tab.evaluate(label)
    await tab.press("ArrowDown")
    await tab.press("ArrowRight")
    before = await tab.evaluate(width)
    await tab.press("Enter")
    opened_width = await tab.evaluate(width)
    told = await tab.evaluate("document.querySelector('.path').textContent")
    await tab.press("Escape")

    assert child.startswith("model.layers")
    assert told == await tab.evaluate(label)
    assert float(before.rstrip("%")) < 90
    assert opened_width == "100.0000%" or opened_width == "100%"
    assert float((await tab.evaluate(width)).rstrip("%")) == pytest.approx(
        float(before.rstrip("%")), abs=0.01
    )
    assert await tab.evaluate("document.querySelectorAll('.icicle [tabindex=\"0\"]').length") == 1
    assert_quiet(tab)


async def test_the_drawings_have_names_for_those_who_listen(tab: Tab, tmp_path: Path) -> None:
    """Title and description of each, as the accessibility tree has them."""
    await opened(tab, page_of(plain_drawing()), tmp_path, Screen())

    tree = await tab.call("Accessibility.getFullAXTree")

    named = {
        node.get("role", {}).get("value"): node.get("name", {}).get("value")
        for node in tree["nodes"]
        if node.get("role", {}).get("value") in ("image", "tree", "slider")
    }
    assert named["tree"] == "Memory at the peak by module"
    assert named["slider"].startswith("Moment")
    images = [
        node["name"]["value"]
        for node in tree["nodes"]
        if node.get("role", {}).get("value") == "image"
    ]
    assert any(name.startswith("Memory on middle along the run") for name in images)
    assert any(name.startswith("What fills middle at the peak") for name in images)


async def test_a_page_reads_without_scripts(tab: Tab, tmp_path: Path) -> None:
    """The drawings, the legend and the tables are there; the controls that need one are not."""
    await tab.call("Emulation.setScriptExecutionDisabled", value=True)

    await opened(tab, page_of(plain_drawing()), tmp_path, Screen())

    # Questions of ours are answered all the same: they are no scripts of the page.
    assert await tab.evaluate("document.querySelectorAll('.plot path').length") > 3
    assert not await tab.evaluate("document.querySelector('.controls').checkVisibility()")
    assert await tab.evaluate("document.querySelector('.now').checkVisibility()")


async def test_a_run_of_200_000_events_opens(
    tab: Tab, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """How long it takes is told (`-s`), and asserted nowhere: it depends on the machine."""
    await opened(tab, page_of(long_drawing()), tmp_path, Screen())

    milliseconds = await tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    nbytes = (tmp_path / "picture.html").stat().st_size
    record_property("milliseconds", milliseconds)
    print(f"200,000 events: {nbytes:,} bytes, loaded after {milliseconds:.0f} ms")
    assert milliseconds > 0
    assert await tab.evaluate("document.querySelectorAll('.icicle g').length") > 100
    assert_quiet(tab)


def test_the_script_is_short_enough_to_be_read() -> None:
    """It goes into every page, and a person who opens one may want to know what it does."""
    assert len(files("estimator.report.page").joinpath("script.js").read_text()) < 12_000
