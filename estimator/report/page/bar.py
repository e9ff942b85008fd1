"""What fills the card at the peak, as one bar against what the card gives.

Estimate -> Markup
"""

from __future__ import annotations

from estimator.report.page.figures import ROLES, label_of, percent, size
from estimator.report.page.markup import Markup, element, joined
from estimator.result import Estimate
from estimator.units import gib_down

HEIGHT = 44
BAR = 26
OVERHEADS = ("context", "libraries", "other")
ROOM = 1.04
"""What lies beyond the card is cut off a little behind it."""


def budget_bar(estimate: Estimate, *, name: str) -> Markup:
    """Return the breakdown of *estimate* as a bar, and the card's end as a line.

    The bar is as long as the larger of both; *name* tells its title from those of other bars.
    """
    peak, budget = estimate.peak.device_bytes, estimate.device.budget_bytes
    whole = max(1, round(ROOM * max(peak, estimate.enough.device_bytes, budget or 0)))
    pieces, start = [], 0
    for part, nbytes in parts(estimate):
        pieces.append(_piece(part, nbytes, start=start, whole=whole))
        start += nbytes
    words = ", ".join(f"{label_of(part)} {size(nbytes)}" for part, nbytes in parts(estimate))
    marks = [] if budget is None else [_card(estimate, budget, whole)]
    return element(
        "svg",
        element("title", f"What fills {estimate.device.name} at the peak", id=f"{name}-title"),
        element("desc", f"{size(peak)} in all: {words}", id=f"{name}-desc"),
        pieces,
        _need(estimate, whole),
        marks,
        class_="bar",
        role="img",
        width="100%",
        height=HEIGHT,
        aria_labelledby=f"{name}-title {name}-desc",
    )


def parts(estimate: Estimate) -> list[tuple[str, int]]:
    """Return what makes up the peak on the card, the larger first, nothing left out."""
    breakdown = estimate.breakdown.model_dump()
    found = {role: breakdown[role] for role in (*ROLES, "cached")}
    found["beside"] = sum(breakdown[name] for name in OVERHEADS)
    return sorted(
        ((part, nbytes) for part, nbytes in found.items() if nbytes),
        key=lambda item: -item[1],
    )


def legend(estimate: Estimate) -> Markup:
    """Return the parts as a list with sizes: the bar in words."""
    peak = estimate.peak.device_bytes
    return element(
        "ul",
        [
            element(
                "li",
                element("i", class_=f"k k-{part}"),
                element("span", label_of(part)),
                element("b", size(nbytes)),
                element("span", percent(nbytes, peak), class_="share"),
            )
            for part, nbytes in parts(estimate)
        ],
        class_="legend",
    )


def _piece(part: str, nbytes: int, *, start: int, whole: int) -> Markup:
    return element(
        "rect",
        element("title", f"{label_of(part)}: {size(nbytes)}"),
        class_=f"f k-{part}",
        x=f"{100 * start / whole:.3f}%",
        y=0,
        width=f"{100 * nbytes / whole:.3f}%",
        height=BAR,
    )


def _need(estimate: Estimate, whole: int) -> Markup:
    """Return the stretch from `least` to `enough` below the bar."""
    least, enough = estimate.least.device_bytes, estimate.enough.device_bytes
    return element(
        "rect",
        element("title", f"needs between {size(least)} and {size(enough)}"),
        class_="need",
        x=f"{100 * least / whole:.3f}%",
        y=BAR + 5,
        width=f"{max(0.4, 100 * (enough - least) / whole):.3f}%",
        height=6,
    )


def _card(estimate: Estimate, budget: int, whole: int) -> Markup:
    at = f"{100 * budget / whole:.3f}%"
    text = f"{estimate.device.name} gives {gib_down(budget)}"
    return joined(
        element(
            "line",
            element("title", text),
            class_="card",
            x1=at,
            x2=at,
            y1=0,
            y2=HEIGHT,
        ),
    )
