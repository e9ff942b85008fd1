"""Which unit of a sharded model an event belongs to.

    Trace, Wrap -> Units

A unit is what is gathered and given back at once: a repeated block (`wrap: layer`), or runs of
modules of at least `SIZE` elements (`wrap: size`). What is in no block is the root's. With `wrap:
layerAndEnds` what comes before the blocks is a unit too (the embedding), and what comes after them
another (the last norm and the head), which stays whole between forward and backward.
Source of the last: pytorch/torchtitan@83e69410 `models/llama3/infra/parallelize.py` (`apply_fsdp`;
until then its root held them); torchtune's `custom_sharded_layers` does about the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from estimator.spec.vocabulary import Wrap
from estimator.trace import COMPANION, GATHERED_FLOAT8, EventKind, Phase, Role, Trace

ROOT = 0
BLOCK = re.compile(r"^(.*?\.\d+)(?:\.|$)")
"""The path of the outermost numbered module: `model.layers.3`."""
FRONT, TAIL = "", "tail"
"""Names of the units before and after the blocks; no module has them."""
SIZE = 100_000_000
"""Bytes a unit of `wrap: size` has at least. FSDP's `size_based_auto_wrap_policy` takes 1e8
elements unless told otherwise, 200 MB in 16 bits: smaller units hold less (assumed)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The units of a model, in the order of their parameters; unit 0 is the root."""

    of_place: Sequence[int]
    """Unit of each entry of the trace's place table."""
    weights: Sequence[int]
    """Bytes of each unit's parameters, as traced."""
    small: Sequence[int]
    """Bytes of those of them that have few elements (`gathered.PERSISTENT_ELEMENTS`)."""
    others: int = 0
    """How many units, the last ones, are of models that are not trained."""
    gathered: Sequence[int] = ()
    """Bytes FSDP2 gathers for each unit, where they are not those of its weights (float8)."""
    kept: int = ROOT
    """A unit that is not given back after forward, beside the root; the root if there is none."""
    trained_bytes: int = 0
    """Bytes of all parameters that get a gradient, as traced."""

    @property
    def count(self) -> int:
        """Return how many there are, the root among them."""
        return len(self.weights)


def units_of(trace: Trace, wrap: Wrap, *, persistent_bytes: int = 0, traced: int = 1) -> Units:
    """Return the units of the model in *trace*; `small` counts tensors below *persistent_bytes*.

    Of layers that are gathered in float8, weights of *traced* bytes count as one byte each.
    """
    paths = _weights_by_path(trace)
    small_paths = _weights_by_path(trace, below=persistent_bytes)
    blocks = _by_size(paths) if wrap is Wrap.SIZE else _by_layer(paths)
    has_ends = wrap is Wrap.LAYER_AND_ENDS and bool(blocks)
    if has_ends:
        blocks = _with_ends(paths, blocks)
    in_float8 = frozenset(filter(None, trace.facts.get(GATHERED_FLOAT8, "").split(",")))
    numbers: dict[str, int] = {}
    for name in blocks.values():
        numbers.setdefault(name, len(numbers) + 1)
    weights = [0] * (len(numbers) + 1)
    small = [0] * (len(numbers) + 1)
    gathered = [0] * (len(numbers) + 1)
    for path, nbytes in paths.items():
        unit = numbers.get(blocks.get(path, ""), ROOT)
        weights[unit] += nbytes
        small[unit] += small_paths.get(path, 0)
        is_cast = path.rpartition(".")[2] in in_float8
        gathered[unit] += -(-nbytes // traced) if is_cast else nbytes
    has_tail = has_ends and TAIL in numbers
    known = {path: numbers[name] for path, name in blocks.items()}
    of_block = {name: number for name, number in numbers.items() if wrap is not Wrap.SIZE}
    cache: dict[str, int] = {}

    def of(module: str) -> int:
        if module not in cache:
            match = BLOCK.match(module)
            own = of_block.get(match[1], ROOT) if match else ROOT
            cache[module] = known.get(module, own)
        return cache[module]

    return Units(
        of_place=[of(place.module) for place in trace.place_table],
        weights=weights,
        small=small,
        others=sum(name.startswith(COMPANION) for name in numbers),
        gathered=gathered,
        kept=numbers[TAIL] if has_tail else ROOT,
        trained_bytes=trained_bytes(trace),
    )


def trained_bytes(trace: Trace) -> int:
    """Return the bytes of the gradients of the first backward pass."""
    first = next((each.step for each in trace.place_table if each.phase is Phase.BACKWARD), 0)
    return sum(
        trace.sizes[tensor]
        for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True)
        if kind == EventKind.ALLOC
        and trace.roles[tensor] == Role.GRADIENT
        and trace.place_table[place].step == first
    )


def _weights_by_path(trace: Trace, *, below: int | None = None) -> dict[str, int]:
    """Return the bytes of the parameters of each module, in the order they were loaded.

    With *below*, only of tensors of at most so many bytes.
    """
    found: dict[str, int] = {}
    for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        where = trace.place_table[place]
        if where.phase is not Phase.LOAD:
            break
        is_weight = kind == EventKind.ALLOC and trace.roles[tensor] == Role.PARAMETER
        if is_weight and (below is None or trace.sizes[tensor] <= below):
            found[where.module] = found.get(where.module, 0) + trace.sizes[tensor]
    return found


def _by_layer(paths: dict[str, int]) -> dict[str, str]:
    """Return the block of each module that is in one."""
    return {path: match[1] for path in paths if (match := BLOCK.match(path))}


def _with_ends(paths: dict[str, int], blocks: dict[str, str]) -> dict[str, str]:
    """Return *blocks* with the modules before the first and after the last one of the model.

    Models beside the trained one keep to their blocks.
    """
    own = [path for path in paths if not path.startswith(COMPANION)]
    first = next((path for path in own if path in blocks), None)
    found: dict[str, str] = {}
    end = FRONT
    for path in paths:
        end = TAIL if path == first else end
        if path in blocks:
            found[path] = blocks[path]
        elif not path.startswith(COMPANION):
            found[path] = end
    return found


def _by_size(paths: dict[str, int]) -> dict[str, str]:
    """Return runs of modules of at least `SIZE` bytes, named after their first."""
    found: dict[str, str] = {}
    run: list[str] = []
    total = 0
    for path, nbytes in paths.items():
        run.append(path)
        total += nbytes
        if total >= SIZE:
            found |= dict.fromkeys(run, run[0])
            run, total = [], 0
    return found
