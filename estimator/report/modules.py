"""Who holds the memory at the peak: live tensors as a tree of modules.

    Program, blocks, event -> Branch, Holdings

A tensor belongs to the module that made it. Pure.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from estimator.program import Program
from estimator.report.account import ROLE_NAMES
from estimator.report.drawing import Branch, Holding
from estimator.report.timeline import moment_of
from estimator.trace import EventKind, Place

MAX_LARGEST = 20
MAX_DEPTH = 10
SHARE = 250
"""What is less than one part of so many of the whole is summed up with others."""
MAX_NAME = 120
ROOT = "allocated"

_SEPARATORS = re.compile(r"[./]")
_FLAT = re.compile(r"[._/]")
"""Of frameworks whose names hold the path in one word: `stage2_conv1_weight`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """One tensor at the peak."""

    nbytes: int
    role: str
    place: Place


def alive_at(program: Program, blocks: array[int], *, event: int) -> tuple[Alive, ...]:
    """Return the tensors with blocks that are alive right after *event*, in order of birth."""
    births: dict[int, int] = {}
    for kind, tensor, place in zip(
        program.kinds[: event + 1],
        program.ids[: event + 1],
        program.places[: event + 1],
        strict=True,
    ):
        if kind == EventKind.ALLOC:
            births[tensor] = place
        elif kind == EventKind.FREE:
            births.pop(tensor, None)
    return tuple(
        Alive(
            nbytes=blocks[tensor],
            role=ROLE_NAMES[program.roles[tensor]],
            place=program.place_table[place],
        )
        for tensor, place in births.items()
        if blocks[tensor]
    )


def largest_of(alive: Sequence[Alive]) -> tuple[Holding, ...]:
    """Return the largest tensors; of equal ones those that were born first."""
    ranked = sorted(alive, key=lambda each: -each.nbytes)[:MAX_LARGEST]
    return tuple(
        Holding(bytes=each.nbytes, role=each.role, born=moment_of(each.place)) for each in ranked
    )


def tree_of(alive: Iterable[Alive], *, is_flat: bool = False) -> Branch:
    """Return the tensors by module, and within a module by role.

    Paths are parted at dots and slashes, at underscores too where *is_flat*. What is small is
    summed up, a module that holds nothing but one other is written with it, and what is below
    `MAX_DEPTH` modules is not told apart.
    """
    separators = _FLAT if is_flat else _SEPARATORS
    root = _Node(name=ROOT)
    for each in alive:
        node = root
        node.add(each)
        parts = [part for part in separators.split(each.place.module) if part]
        for part in parts[:MAX_DEPTH]:
            node = node.child(part[:MAX_NAME])
            node.add(each)
        node.own[each.role] = node.own.get(each.role, 0) + each.nbytes
    return _branch(root, least=root.nbytes // SHARE)


@dataclass(slots=True, kw_only=True)
class _Node:
    """A module while tensors are added."""

    name: str
    nbytes: int = 0
    live: dict[str, int] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)
    """Of tensors that no module below has."""
    below: dict[str, _Node] = field(default_factory=dict)

    def add(self, each: Alive) -> None:
        self.nbytes += each.nbytes
        self.live[each.role] = self.live.get(each.role, 0) + each.nbytes

    def child(self, name: str) -> _Node:
        if name not in self.below:
            self.below[name] = _Node(name=name)
        return self.below[name]


def _branch(node: _Node, *, least: int) -> Branch:
    name = node.name
    while node.name != ROOT and not node.own and len(node.below) == 1:
        (node,) = node.below.values()
        name = f"{name}.{node.name}"
    own = [Branch(name=role, bytes=size, live={role: size}) for role, size in node.own.items()]
    small = [each for each in node.below.values() if each.nbytes < least]
    large = [each for each in node.below.values() if each.nbytes >= least]
    if len(small) == 1:
        large, small = [*large, *small], []
    children = [*own, *(_branch(each, least=least) for each in large)]
    if small:
        children.append(_summed(small))
    if len(own) == 1 == len(children):
        children = []
    ranked = sorted(children, key=lambda each: -each.bytes)
    return Branch(
        name=name[:MAX_NAME], bytes=node.nbytes, live=_ordered(node.live), children=tuple(ranked)
    )


def _summed(nodes: Sequence[_Node]) -> Branch:
    live: dict[str, int] = {}
    for node in nodes:
        for role, size in node.live.items():
            live[role] = live.get(role, 0) + size
    name = f"{len(nodes)} smaller"
    return Branch(name=name, bytes=sum(node.nbytes for node in nodes), live=_ordered(live))


def _ordered(live: dict[str, int]) -> dict[str, int]:
    return dict(sorted(live.items(), key=lambda item: -item[1]))
