"""Where in a script a statement stands: its list, and the blocks around it.

Values that `flow.py` keeps while a script is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from admission.detect.scope import State


class Phase(Enum):
    """Which part of a block is being read."""

    CLAUSE = auto()
    """Between `for` or `case` and `do` or `in`."""
    CONDITION = auto()
    PATTERN = auto()
    """Before the `)` of a case."""
    BODY = auto()


class Chance(Enum):
    """Whether a branch runs."""

    NEVER = auto()
    OPEN = auto()
    SURE = auto()


@dataclass(slots=True)
class List:
    """Commands joined by `&&`, `||` and `|`."""

    is_sure: bool = True
    before: State | None = None
    """As it was before what may not run."""
    is_alternative: bool = False
    """After `||`."""
    is_piped: bool = False
    """After `|`: the next command runs in a shell of its own."""
    is_awaited: bool = False
    """After an operator: a line may end here."""

    @property
    def is_new(self) -> bool:
        """Return whether nothing of the list was read yet, or nothing that matters after it."""
        is_single = not (self.is_alternative or self.is_piped or self.is_awaited)
        return is_single and self.is_sure and self.before is None


@dataclass(slots=True, kw_only=True)
class Block:
    """`if`, a loop, `case`, `{ … }` or `( … )`, and what was so outside it."""

    kind: str
    phase: Phase
    start: int
    """Where in the text its inside starts."""
    num_commands: int
    num_printed: int
    """How much was printed before it."""
    before: State
    outer: List
    is_sure: bool
    is_level_sure: bool
    is_dead: bool
    function: str | None = None
    """The name, if this is the body of a function that is being defined."""
    branch: State | None = None
    changed: set[str] = field(default_factory=set)
    """Variables that some branch has set."""
    is_decided: bool = False
    """Its body runs for certain."""
    was_read: bool = False
    """A loop that is read for the second time."""
    result: tuple[State, bool] | None = None
    """How the branch that runs for certain left the scope, and whether the script ended in it."""
    chance_of_rest: Chance = Chance.SURE
    """Whether the branches after those that were read run, if their conditions hold."""

    def take(self, chance: Chance) -> Chance:
        """Return whether the next branch of an `if` runs, whose condition has this *chance*."""
        rest = self.chance_of_rest
        if chance is Chance.NEVER or rest is Chance.NEVER:
            return Chance.NEVER
        is_sure = chance is Chance.SURE
        self.chance_of_rest = Chance.NEVER if is_sure else Chance.OPEN
        return Chance.SURE if is_sure and rest is Chance.SURE else Chance.OPEN
