"""What a compiled step keeps on a card, as XLA's buffer assignment says.

    text of a buffer assignment -> CompiledMemory

Every figure is XLA's own: nothing is computed again here but sums.

Source: openxla/xla@4336d12e xla/service/buffer_assignment.cc (`BufferAllocation::ToString`) and
xla/pjrt/pjrt_executable.cc (`CompiledMemoryStats::PopulateBufferStatsFromAllocations`).
Not modelled: memory spaces of the host (offloaded parameters); the code itself, which the driver
loads beside the allocator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from estimator.errors import TraceError

NUM_LARGEST = 12
"""How many buffers of the arena are named."""

_ALLOCATION = re.compile(r"^allocation (\d+): size (\d+), ?(.*):\s*$")
_VALUE = re.compile(r"^ value: <\d+ (\S+) @\d+> \(size=(\d+),offset=(\d+)\): (\S+)")
_OPERATOR = re.compile(r'^ *(?:ROOT )?%?(\S+) = .*?metadata=\{.*?op_name="([^"]*)"', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """One value of the arena: the instruction that writes it, and whose it is."""

    instruction: str
    operator: str
    """The path of the operator in the program, empty if XLA made it itself."""
    shape: str
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledMemory:
    """Bytes a step takes of one card."""

    arguments: tuple[int, ...]
    """Of each argument that is kept, by its number."""
    aliased: tuple[bool, ...]
    """Whether the argument is donated: an output is written over it."""
    outputs: int
    """Outputs that are written over no argument."""
    temporary: int
    """The arena, one block taken before the step starts."""
    constants: int = 0
    """Constants of the program, on the card as long as it is loaded."""
    largest: tuple[Buffer, ...] = ()
    """The largest values of the arena, which do not all live at once."""
    cpu_seconds: float = 0.0
    """What the compile took of the processor. No figure depends on it."""
    resident_bytes: int = 0
    """Host memory of the compile at its most."""

    @property
    def argument_bytes(self) -> int:
        """Return the bytes of all arguments."""
        return sum(self.arguments)

    @property
    def alias_bytes(self) -> int:
        """Return the bytes of the arguments that outputs are written over."""
        pairs = zip(self.arguments, self.aliased, strict=True)
        return sum(nbytes for nbytes, is_aliased in pairs if is_aliased)

    @property
    def total(self) -> int:
        """Return what the step needs in all, if the arena is one block."""
        return self.argument_bytes + self.outputs + self.temporary + self.constants


def read_assignment(text: str, *, module: str = "") -> CompiledMemory:
    """Return what the buffer assignment in *text* takes; *module* is the program it is for.

    Raises:
        TraceError: if it is not one, or of a kind of memory that is not known.
    """
    arguments: dict[int, tuple[int, bool]] = {}
    totals = {"outputs": 0, "temporary": 0, "constants": 0}
    arena: list[tuple[str, int, str]] = []
    is_arena = False
    num_allocations = 0
    for line in text.splitlines():
        found = _ALLOCATION.match(line)
        if found is not None:
            num_allocations += 1
            nbytes, words = int(found[2]), _without_shapes(found[3])
            is_arena = "preallocated-temp" in words
            number = next((word for word in words if word.startswith("parameter ")), None)
            if number is not None:
                arguments[int(number.split()[1])] = nbytes, "maybe-live-out" in words
            elif (part := _part(words)) is not None:
                totals[part] += nbytes
        elif is_arena and (value := _VALUE.match(line)) is not None:
            arena.append((value[1], int(value[2]), value[4]))
    if num_allocations == 0:
        raise TraceError("XLA's buffer assignment is in a form that is not known")
    numbers = sorted(arguments)
    return CompiledMemory(
        arguments=tuple(arguments[number][0] for number in numbers),
        aliased=tuple(arguments[number][1] for number in numbers),
        largest=tuple(_largest(arena, module)),
        **totals,
    )


def _without_shapes(words: str) -> tuple[str, ...]:
    """Return the words of an allocation, without the shapes they may hold."""
    plain = re.sub(r"\|[^|]*\|", "", words)
    return tuple(word.strip() for word in plain.split(","))


def _part(words: Iterable[str]) -> str | None:
    """Return which sum an allocation that is no argument belongs to, None if to none.

    Raises:
        TraceError: if it is of a kind that is not known.
    """
    given = set(words)
    if "thread-local" in given:  # registers of fused kernels
        return None
    if "preallocated-temp" in given:
        return "temporary"
    if "constant" in given:
        return "constants"
    if "maybe-live-out" in given or any(word.startswith("output shape") for word in given):
        return "outputs"
    raise TraceError(f"XLA's buffer assignment has memory of a kind that is not known: {given}")


def _largest(arena: list[tuple[str, int, str]], module: str) -> Iterator[Buffer]:
    ranked = sorted(arena, key=lambda value: -value[1])[:NUM_LARGEST]
    operators = _operators(module, {_instruction(name) for name, _, _ in ranked})
    for name, nbytes, shape in ranked:
        instruction = _instruction(name)
        yield Buffer(
            instruction=instruction,
            operator=operators.get(instruction, ""),
            shape=shape.partition("{")[0],
            nbytes=nbytes,
        )


def _instruction(name: str) -> str:
    """Return the instruction of a value: `fusion.3{1}` is the second output of `fusion.3`."""
    return name.partition("{")[0]


def _operators(module: str, wanted: set[str]) -> Mapping[str, str]:
    """Return the operator each *wanted* instruction of *module* stems from."""
    found: dict[str, str] = {}
    for match in _OPERATOR.finditer(module):
        if match[1] in wanted:
            found[match[1]] = match[2]
    return found
