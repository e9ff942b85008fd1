"""Who holds the memory at the peak: modules below each other, as wide as what they hold.

    Branch -> Markup

A row is a level of the model. Without a script it is still; with it a module can be opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from estimator.report.drawing import Branch
from estimator.report.page.figures import label_of, percent, size
from estimator.report.page.markup import Markup, element

ROW = 26
THINNEST = 0.0015
"""Share of the whole below which a module is not drawn: less than a pixel on a laptop."""
NARROW, SLIM = 0.035, 0.16
"""Shares below which a name is left out, everywhere and on a phone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one branch is drawn, in shares of the whole."""

    branch: Branch
    path: tuple[str, ...]
    """Names from below the root; empty for the root."""
    level: int
    start: float
    width: float


def icicle(tree: Branch, *, name: str) -> Markup:
    """Return *tree* as rows of blocks, the whole at the top."""
    places = [place for place in places_of(tree) if place.width >= THINNEST]
    depth = 1 + max(place.level for place in places)
    return element(
        "svg",
        element("title", "Memory at the peak by module", id=f"{name}-title"),
        element(
            "desc",
            f"{size(tree.bytes)} allocated, by the module that made each tensor. Arrow keys move, "
            "Enter opens a module, Escape goes back. The table below has the same.",
            id=f"{name}-desc",
        ),
        [_block(place, tree.bytes) for place in places],
        class_="icicle",
        role="tree",
        width="100%",
        height=depth * ROW,
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-desc",
    )


def places_of(tree: Branch) -> Iterator[Place]:
    """Yield where every branch lies, a parent before its children."""
    yield from _places(tree, (), level=0, start=0.0, whole=max(1, tree.bytes))


def _places(
    branch: Branch, path: tuple[str, ...], *, level: int, start: float, whole: int
) -> Iterator[Place]:
    width = branch.bytes / whole
    yield Place(branch=branch, path=path, level=level, start=start, width=width)
    for child in branch.children:
        yield from _places(child, (*path, child.name), level=level + 1, start=start, whole=whole)
        start += child.bytes / whole


def _block(place: Place, whole: int) -> Markup:
    branch = place.branch
    told = f"{path_text(place)}: {size(branch.bytes)}, {percent(branch.bytes, whole)}"
    parts = ", ".join(_shares(branch))
    return element(
        "g",
        element("title", f"{told} ({parts})"),
        element(
            "svg",
            element("rect", class_=f"f k-{_main(branch)}", width="100%", height="100%"),
            element(
                "text",
                element("tspan", label_of(branch.name)),
                element("tspan", size(branch.bytes), class_="size", dx=6),
                x=6,
                y=17,
            ),
            x=f"{100 * place.start:.4f}%",
            y=place.level * ROW,
            width=f"{100 * place.width:.4f}%",
            height=ROW - 2,
        ),
        class_=_class(place.width),
        role="treeitem",
        tabindex=-1 if place.level else 0,
        aria_level=place.level + 1,
        data_at=round(place.start, 7),
        data_width=round(place.width, 7),
    )


def path_text(place: Place) -> str:
    """Return the path of a branch in words; that of the root is its name."""
    return ".".join(place.path) or place.branch.name


def _shares(branch: Branch) -> Iterable[str]:
    return (f"{label_of(role)} {size(nbytes)}" for role, nbytes in branch.live.items() if nbytes)


def _main(branch: Branch) -> str:
    """Return the role that most of a branch is."""
    return max(branch.live, key=lambda role: branch.live[role], default="cached")


def _class(width: float) -> str:
    return "narrow" if width < NARROW else "slim" if width < SLIM else "wide"
