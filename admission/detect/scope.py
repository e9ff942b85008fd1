"""Variables, arguments and folder of a shell while its script is read.

    set, unset, forget -> what the next command sees

What may have been changed by something that is not followed is unknown from there on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from admission.detect.budget import LimitError
from admission.detect.words import Variables, Word

OPEN = "\0open"
"""A key among variables: more come from a place that is not read, so no default is certain."""
MAX_NAMES = 500
_Own = Mapping[str, tuple[Word, ...] | None]
"""What the script set; None for what it unset."""
_UNKNOWN_ARGUMENTS = (Word(text="$@", unresolved=("$@",)),)


def unknown_value(name: str) -> tuple[Word, ...]:
    """Return the value of a variable that may be anything."""
    reference = f"${{{name}}}"
    return (Word(text=reference, unresolved=(reference,)),)


@dataclass(frozen=True, slots=True)
class State(Mapping[str, tuple[Word, ...]]):
    """Everything at one moment; as a mapping, the variables."""

    base: Variables
    """What the container or the outer shell has set."""
    own: _Own = field(default_factory=dict)
    is_forgotten: bool = False
    """What is in `base` may be anything now."""
    arguments: tuple[Word, ...] = ()
    directory: str = ""

    def __getitem__(self, name: str) -> tuple[Word, ...]:
        if name in self.own:
            value = self.own[name]
            if value is None:
                raise KeyError(name)
            return value
        if not self.is_forgotten:
            return self.base[name]
        if name == OPEN:
            return ()
        return unknown_value(name) if name in self.base else self.base[name]

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys((*self.base, *self.own, *((OPEN,) if self.is_forgotten else ())))
        return (name for name in names if self.own.get(name, ()) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Scope:
    """The state of one shell, as it changes."""

    def __init__(
        self, variables: Variables, *, arguments: tuple[Word, ...] = (), directory: str = ""
    ) -> None:
        self.base = variables
        self.own: dict[str, tuple[Word, ...] | None] = {}
        self.is_forgotten = False
        self.arguments = arguments
        self.directory = directory
        self._is_shared = False
        """A state holds `own` as it is now."""
        self._last: State | None = None
        """The state that was asked for last: most commands change nothing."""

    def get(self, name: str) -> tuple[Word, ...] | None:
        """Return the value of *name*; None if nothing sets it."""
        if name in self.own:
            return self.own[name]
        value = self.base.get(name)
        return unknown_value(name) if value is not None and self.is_forgotten else value

    @property
    def is_open(self) -> bool:
        """Return whether variables that nothing sets here may be set all the same."""
        return self.is_forgotten or OPEN in self.base

    def set(self, name: str, value: tuple[Word, ...] | None) -> None:
        """Set *name* for good; None unsets it."""
        if self._is_shared:
            self.own, self._is_shared = dict(self.own), False
        self.own[name] = value
        if len(self.own) > MAX_NAMES:
            raise LimitError(f"the script sets more than {MAX_NAMES} variables")

    def doubt(self, names: Iterable[str]) -> None:
        """Note that *names* may be anything from here on."""
        for name in names:
            self.set(name, unknown_value(name))

    def doubt_arguments(self, known: tuple[Word, ...] = ()) -> None:
        """Note that the positional arguments after *known* may be anything."""
        self.arguments = (*known, *_UNKNOWN_ARGUMENTS)

    def forget(self) -> None:
        """Note that every variable may be anything from here on."""
        self.doubt(name for name, value in self.own.items() if value is not None)
        self.own = {name: value for name, value in self.own.items() if value is not None}
        self.is_forgotten = True

    def state(self) -> State:
        """Return the state as it is now."""
        self._is_shared = True
        last = self._last
        if (
            last is None
            or last.own is not self.own
            or last.arguments is not self.arguments
            or last.directory != self.directory
            or last.is_forgotten is not self.is_forgotten
        ):
            last = State(self.base, self.own, self.is_forgotten, self.arguments, self.directory)
            self._last = last
        return last

    def restore(self, state: State) -> None:
        """Go back to *state*."""
        self.own = dict(state.own)
        self._is_shared = False
        self.is_forgotten = state.is_forgotten
        self.arguments, self.directory = state.arguments, state.directory

    def changed_since(self, state: State) -> frozenset[str]:
        """Return the names whose value is not that of *state*."""
        if self.own is state.own:
            return frozenset()
        names = self.own.keys() | state.own.keys()
        return frozenset(name for name in names if self.get(name) != state.get(name))

    def blend(self, state: State) -> None:
        """Note that what was done since *state* may or may not have been done."""
        self.doubt(self.changed_since(state))
        self.is_forgotten = self.is_forgotten or state.is_forgotten
        if self.arguments != state.arguments:
            self.doubt_arguments()
        if self.directory != state.directory:
            self.directory = ""
