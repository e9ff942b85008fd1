"""What reading one container may cost, so that a whole review stays under a second.

    number of GPU containers -> Budget

Every limit is of the workload and shared by its containers. Nobody's own job comes near one.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_SCRIPT = 128 << 10
"""Characters of all shell scripts of a workload."""
MAX_EXPANDED = 1 << 20
"""Characters of all words and variables together: variables that double themselves end here."""
MAX_VALUE = 64 << 10
"""Characters of one value after expansion."""
MAX_WORDS = 8_000
MAX_COMMANDS = 1_000
MAX_VARIABLES = 5_000
"""Environment variables of the containers."""
MAX_DOCUMENTS = 256 << 10
"""Characters of all files that are read from ConfigMaps. YAML takes a second for that."""
MAX_MODELS = 1 << 20
"""Characters of all configurations of models. The largest on the Hub is 100 KiB."""
MAX_ANNOTATION = 64 << 10
"""Characters of one annotation."""
_REREAD = 3
"""Loops and functions are read again: as often as this on average."""


class LimitError(Exception):
    """The container is longer than anybody writes by hand."""


@dataclass(slots=True, kw_only=True)
class Budget:
    """What may still be read of one container. Goes down while it is read."""

    script: int
    """Characters of scripts, each counted once."""
    reading: int
    """Characters of scripts, counted as often as they are read."""
    expanded: int
    words: int
    commands: int
    variables: int
    annotation: int
    """Characters of each annotation."""
    documents: int
    """Characters of files in ConfigMaps."""
    models: int
    """Characters of models' configurations."""

    def read_script(self, number: int) -> None:
        """Take *number* characters of a script that is new."""
        self.script -= number
        if self.script < 0:
            raise LimitError("the scripts are too long to be read")

    def read_again(self, number: int) -> None:
        """Take *number* characters that are walked, maybe not for the first time."""
        self.reading -= number
        if self.reading < 0:
            raise LimitError("the scripts take too long to be read: loops or functions nest")

    def expand(self, number: int) -> None:
        """Take *number* characters of expanded words."""
        self.expanded -= number
        if self.expanded < 0:
            raise LimitError("the container's variables expand to too much text")

    def expand_word(self, number: int, *, before: int = 0) -> None:
        """Take *number* characters of one word, which has *before* of them already."""
        self.expanded -= number
        if self.expanded < 0 or before + number > MAX_VALUE:
            self.expand(0)
            raise LimitError(f"a word expands to more than {MAX_VALUE} characters")

    def add_word(self) -> None:
        """Take one word of a command line."""
        self.words -= 1
        if self.words < 0:
            raise LimitError("the command line has too many words")

    def add_command(self) -> None:
        """Take one command of a script."""
        self.commands -= 1
        if self.commands < 0:
            raise LimitError("the scripts have too many commands")


def budget_for(num_units: int) -> Budget:
    """Return the budget of each of *num_units* containers of a workload."""

    def share(total: int, least: int) -> int:
        return max(least, total // max(1, num_units))

    script = share(MAX_SCRIPT, 4 << 10)
    return Budget(
        script=script,
        reading=_REREAD * script,
        expanded=share(MAX_EXPANDED, 64 << 10),
        words=share(MAX_WORDS, 250),
        commands=share(MAX_COMMANDS, 100),
        variables=share(MAX_VARIABLES, 500),
        annotation=share(MAX_ANNOTATION, 4 << 10),
        documents=share(MAX_DOCUMENTS, 8 << 10),
        models=share(MAX_MODELS, 32 << 10),
    )
