"""Answers that come with us: of a cuDNN that cannot be installed beside PyTorch's.

    catalog/data/cudnn/*.json.xz -> Edition

A file is read when its card is first asked about, and once. Made by `tools/cudnn_plans.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable

from estimator.cudnn.cards import Card
from estimator.cudnn.questions import Answer, Question
from estimator.cudnn.support import version_text
from estimator.cudnn.table import Table, TableError, decode_table

VERSIONS = (91002,)
"""cuDNN 9.10.2: what PyTorch 2.8 to 2.10 bring, and the last with answers for Volta."""
MOST_BYTES = 4 << 20
"""Of a file. All together take at most 5 MB."""


class Shipped:
    """An `Edition` over the files of one version."""

    def __init__(self, version: int, *, folder: Traversable | None = None) -> None:
        """Read from *folder*, by default the catalog's."""
        self.version = version
        self.reason: str | None = None
        self._folder = folder or catalog_folder()
        self._tables: dict[Card, Table | None] = {}

    def ask(self, questions: Sequence[Question], card: Card) -> list[Answer | None]:
        """Return one answer a question, in order, None for those without (see `reason`)."""
        try:
            table = self._table(card)
            answers = [None if table is None else table.answer(each) for each in questions]
        except TableError as error:
            self.reason = f"the {self._name(card)} cannot be read: {error}"
            return [None] * len(questions)
        missing = answers.count(None)
        if table is None:
            cores = f"with {card.multiprocessors} multiprocessors"
            self.reason = f"there is no {self._name(card)} {cores}"
        elif missing:
            noun = "shape" if missing == 1 else "shapes"
            self.reason = f"no answer for {missing} {noun} in the {self._name(card)}"
        return answers

    def _table(self, card: Card) -> Table | None:
        """Return the table of *card*, read once."""
        if card not in self._tables:
            self._tables[card] = read_table(self.version, card, self._folder)
        return self._tables[card]

    def _name(self, card: Card) -> str:
        """Return what to call the table of *card*."""
        major, minor = card.compute_capability
        return (
            f"shipped table for cuDNN {version_text(self.version)} "
            f"on compute capability {major}.{minor}"
        )


def shipped_editions() -> tuple[Shipped, ...]:
    """Return every version that comes with us."""
    return tuple(Shipped(version) for version in VERSIONS)


def catalog_folder() -> Traversable:
    """Return where the files are."""
    return files("estimator.catalog").joinpath("data", "cudnn")


def file_name(version: int, card: Card) -> str:
    """Return the name of the table of *version* about *card*."""
    major, minor = card.compute_capability
    return f"{version_text(version)}-{major}.{minor}-{card.multiprocessors}.json.xz"


def read_table(version: int, card: Card, folder: Traversable) -> Table | None:
    """Return the table of *version* about *card* in *folder*, None if there is none.

    Raises:
        TableError: if the file is broken, or of something else than its name says.
    """
    try:
        with folder.joinpath(file_name(version, card)).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TableError(str(error.strerror)) from error
    if len(content) > MOST_BYTES:
        raise TableError(f"it is longer than {MOST_BYTES} bytes")
    table = decode_table(content)
    if (table.release.version, table.card) != (version, card):
        raise TableError("it is of another version or card")
    return table
