"""The picture for a terminal: the run as columns of blocks, the modules as an indented tree.

Page -> rich

The same content as the page, for people without a browser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, RenderableType
from rich.text import Text
from rich.tree import Tree

from admission.commands.explain_table import PLAIN_WIDTH
from admission.plaintext import plain
from estimator.report.drawing import Branch, JobDrawing, RankDrawing, Timeline
from estimator.report.page.bar import parts
from estimator.report.page.chart import where
from estimator.report.page.content import Card, Page, Part, Tone
from estimator.report.page.figures import (
    BESIDE,
    CACHED,
    ROLES,
    Axis,
    bands_of,
    label_of,
    percent,
    size,
    span,
)
from estimator.units import gib_down

HEIGHT = 14
"""Rows of the run."""
MARGIN = 10
BAR = 32
MAX_CHILDREN = 6
MAX_DEPTH = 5
SHARE = 50
"""What is less than one part of so many of the whole is left out of the tree."""
LETTERS: Mapping[str, tuple[str, str]] = {
    BESIDE: ("b", "bright_black"),
    "parameters": ("p", "blue"),
    "optimizer": ("o", "magenta"),
    "gradients": ("g", "cyan"),
    "inputs": ("i", "yellow"),
    "activations": ("a", "red"),
    "temporary": ("t", "bright_magenta"),
    "workspace": ("w", "green"),
    "communication": ("c", "bright_cyan"),
    CACHED: (".", "bright_black"),
}
"""How a part is drawn: a letter, so that it can be told without colours, and a colour."""
STYLES: Mapping[Tone, str] = {
    Tone.FITS: "bold green",
    Tone.TIGHT: "bold yellow",
    Tone.OOM: "bold red",
    Tone.UNKNOWN: "bold magenta",
}


def print_page(page: Page, console: Console | None = None) -> None:
    """Print *page*, one job below the other."""
    screen = console or Console(highlight=False)
    if not screen.is_terminal:
        screen = Console(file=screen.file, width=PLAIN_WIDTH, highlight=False)
    for index, part in enumerate(page.parts):
        if index:
            screen.print()
        for each in part_text(part, width=screen.width):
            screen.print(each, soft_wrap=False)


def part_text(part: Part, *, width: int) -> Iterator[RenderableType]:
    """Yield one job for a terminal *width* columns wide."""
    yield Text(plain(part.title), style="bold")
    yield Text.assemble((part.verdict, STYLES[part.tone]), ": ", plain(part.message, limit=600))
    for index, change in enumerate(part.changes):
        yield Text(f"{'to change: ' if not index else '           '}{plain(change, limit=300)}")
    for remark in part.remarks:
        yield Text(f"  {plain(remark, limit=400)}", style="dim")
    for card in part.cards:
        yield _card(card)
    if part.drawing is None:
        return
    yield ""
    yield from _bar(part.drawing)
    for rank in part.drawing.ranks:
        several = len(part.drawing.ranks) > 1
        yield ""
        yield Text(f"along the run{f', rank {rank.rank}' if several else ''}", style="bold")
        yield from run_text(rank, part.cards, width=width)
        yield ""
        yield Text(f"at the peak, {plain(where(rank.peak_at))}", style="bold")
        yield tree_text(rank.tree)


def _card(card: Card) -> Text:
    gives = "unknown size" if card.gives_bytes is None else f"gives {gib_down(card.gives_bytes)}"
    need = ""
    if card.least_bytes is not None and card.enough_bytes is not None:
        need = f", needs {span(card.least_bytes, card.enough_bytes)} there"
    return Text.assemble(f"  {plain(card.name)} {gives}{need}: ", (card.verdict, STYLES[card.tone]))


def _bar(drawing: JobDrawing) -> Iterator[Text]:
    """Yield what fills the card at the peak, a line a part."""
    whole = max(1, drawing.estimate.peak.device_bytes)
    for part, nbytes in parts(drawing.estimate):
        letter, style = LETTERS[part]
        blocks = letter * max(1, round(BAR * nbytes / whole))
        yield Text.assemble(
            f"  {label_of(part):20}{size(nbytes):>12}  {percent(nbytes, whole):>6}  ",
            (blocks, style),
        )


def run_text(rank: RankDrawing, cards: Sequence[Card], *, width: int) -> Iterator[Text]:
    """Yield the run as rows of letters, the highest first; a column is the fullest moment in it."""
    columns = _columns(rank.timeline, max(20, min(width, PLAIN_WIDTH) - MARGIN - 2))
    top = max(1, rank.usage.device_bytes)
    bands = bands_of(rank)
    grid = [_stack(bands, index, top) for index in columns]
    fullest = max(range(len(columns)), key=lambda at: _allocated(rank, columns[at]), default=0)
    for row in reversed(range(HEIGHT)):
        mark = size(round(top * (row + 1) / HEIGHT)) if row in (HEIGHT - 1, HEIGHT // 2 - 1) else ""
        line = Text(f"{mark:>{MARGIN}} ")
        for stack in grid:
            part = stack[row]
            letter, style = LETTERS[part] if part else (" ", "")
            line.append(letter, style=style)
        yield line
    yield Text(
        f"{'':>{MARGIN}} {' ' * fullest}^ peak: {size(rank.usage.allocated_bytes)} allocated"
    )
    yield _phases(rank.timeline, columns)
    near = [card for card in cards if 0 < (card.gives_bytes or 0) < rank.usage.device_bytes]
    for card in near:
        yield Text(
            f"{'':>{MARGIN}} {plain(card.name)} ends at {gib_down(card.gives_bytes or 0)}",
            style="red",
        )
    used = [part for part in (BESIDE, *ROLES, CACHED) if any(part in stack for stack in grid)]
    key = "  ".join(f"{LETTERS[part][0]} {label_of(part)}" for part in used)
    yield Text(f"{'':>{MARGIN}} {key}", style="dim")


def tree_text(tree: Branch) -> Tree:
    """Return who holds the memory at the peak as an indented tree."""
    root = Tree(_branch(tree, tree.bytes), guide_style="dim")
    _grow(root, tree, tree.bytes, depth=1)
    return root


def _grow(node: Tree, branch: Branch, whole: int, *, depth: int) -> None:
    if depth > MAX_DEPTH:
        return
    large = [each for each in branch.children if SHARE * each.bytes >= whole][:MAX_CHILDREN]
    for each in large:
        _grow(node.add(_branch(each, whole)), each, whole, depth=depth + 1)
    rest = branch.bytes - sum(each.bytes for each in large)
    if len(large) < len(branch.children) and SHARE * rest >= whole:
        num = len(branch.children) - len(large)
        node.add(Text(f"{num} more {size(rest)}", style="dim"))


def _branch(branch: Branch, whole: int) -> Text:
    role = next(iter(branch.live), "")
    return Text.assemble(
        (plain(label_of(branch.name)), "bold"),
        f" {size(branch.bytes)} {percent(branch.bytes, whole)} ",
        (f"mostly {role}" if len(branch.live) > 1 else role, "dim"),
    )


def _columns(timeline: Timeline, width: int) -> list[int]:
    """Return the fullest sample of each column; one without a sample has the one before."""
    allocated, axis = timeline.allocated(), Axis.of(timeline)
    found: list[int] = []
    at = last = 0
    for column in range(width):
        end = (column + 1) / width
        best = None
        while at < len(timeline.events) and axis.share(timeline.events[at]) < end:
            if best is None or allocated[at] > allocated[best]:
                best = at
            last = at
            at += 1
        found.append(last if best is None else best)
    return found if timeline.events else []


def _stack(bands: Mapping[str, Sequence[int]], index: int, top: int) -> list[str]:
    """Return which part each row of a column is, from the bottom; empty above reserved."""
    heights: list[tuple[str, int]] = []
    height = 0
    for part, column in bands.items():
        height += column[index]
        heights.append((part, height))
    middles = (top * (row + 0.5) / HEIGHT for row in range(HEIGHT))
    return [next((part for part, high in heights if high >= middle), "") for middle in middles]


def _allocated(rank: RankDrawing, index: int) -> int:
    return sum(column[index] for column in rank.timeline.live.values())


def _phases(timeline: Timeline, columns: Sequence[int]) -> Text:
    """Return where each phase begins."""
    line, axis = [" "] * len(columns), Axis.of(timeline)
    for part in timeline.spans:
        at = round(axis.share(part.first) * len(columns))
        word = f"|{part.phase or f'step {part.step}'}"
        if all(each == " " for each in line[at : at + len(word)]):
            for offset, letter in enumerate(word[: len(line) - at]):
                line[at + offset] = letter
    return Text(f"{'':>{MARGIN}} {''.join(line)}", style="dim")
