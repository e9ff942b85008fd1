"""The whole page: one file that asks nobody for anything.

    Page -> HTML

The policy in its head lets exactly our style and our script work, by their digests: a browser
refuses every other one, every request, and forms. Pure: the same page gives the same bytes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from estimator.report.page.content import Page, Part
from estimator.report.page.markup import Markup, element
from estimator.report.page.part import section
from estimator.report.timeline import MAX_SAMPLES

MAX_BYTES = 1_900_000
"""Of all sections: what would not fit any more is told without its drawing."""
ALL_SAMPLES = 8000
"""Samples of all runs together, shared among them."""
LEAST_SAMPLES = 300


def page_html(page: Page) -> str:
    """Return *page* as an HTML document of at most 2 MB if no job has more than its share."""
    named = [(f"job{index}", part) for index, part in enumerate(page.parts, 1)]
    body = element(
        "body",
        element("a", "Skip to the first job", class_="skip", href="#job1") if named else None,
        element(
            "header",
            element("h1", page.title),
            _contents(named) if len(named) > 1 else None,
        ),
        element("main", _sections(named)),
        element(
            "footer",
            element("p", f"Vramgate {page.version}. Sizes are GiB (2^30 bytes), needs rounded up."),
        ),
        element("script", _asset("script.js")),
    )
    return f"<!doctype html>\n{element('html', _head(page), body, lang='en')}\n"


def _sections(named: Sequence[tuple[str, Part]]) -> Iterator[Markup]:
    """Yield every part, drawn as long as there is room."""
    num_runs = sum(len(part.drawing.ranks) for _, part in named if part.drawing)
    each = max(LEAST_SAMPLES, min(MAX_SAMPLES, ALL_SAMPLES // max(1, num_runs)))
    room = MAX_BYTES
    for index, (name, part) in enumerate(named):
        found = section(part, name=name, samples_each=each, is_folded=len(named) > 1)
        if index and len(found) > room:
            told = (*part.remarks, "Not drawn: the page is full. Ask for this job alone.")
            found = section(_undrawn(part, told), name=name, samples_each=each)
        room -= len(found)
        yield found


def _undrawn(part: Part, remarks: tuple[str, ...]) -> Part:
    return Part(
        title=part.title,
        subtitle=part.subtitle,
        tone=part.tone,
        verdict=part.verdict,
        message=part.message,
        changes=part.changes,
        cards=part.cards,
        remarks=remarks,
    )


def _head(page: Page) -> Markup:
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest('script.js')}'",
            f"style-src '{_digest('style.css')}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", f"{page.title} – Vramgate"),
        element("style", _asset("style.css")),
    )


def _contents(named: list[tuple[str, Part]]) -> Markup:
    return element(
        "nav",
        element(
            "ul",
            [
                element(
                    "li",
                    element("span", part.verdict, class_=f"chip {part.tone.value}"),
                    element("a", part.title, href=f"#{name}"),
                )
                for name, part in named
            ],
        ),
        aria_label="Jobs",
    )


@cache
def _asset(name: str) -> Markup:
    """Return a file of ours as it stands in the page."""
    return Markup(files(__package__).joinpath(name).read_text(encoding="utf-8"))


@cache
def _digest(name: str) -> str:
    """Return how a policy names the file *name* (CSP level 3, section 2.3.1)."""
    return f"sha256-{b64encode(sha256(_asset(name).encode()).digest()).decode()}"
