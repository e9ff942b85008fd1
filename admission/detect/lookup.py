"""Documents that stand outside the object, as far as somebody has fetched them.

    reference -> Document, or a note that it is wanted

A reading is repeated with what it wanted until it wants nothing new: see `Reading.wanted`.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.detect.budget import MAX_MODELS
from admission.values import NO_DOCUMENTS, Document, Documents

MAX_WANTED = 32
"""Documents of one unit. Nobody's own job comes near it."""


class Lookup:
    """What was fetched, and a list of what is still wanted."""

    def __init__(
        self, documents: Documents = NO_DOCUMENTS, *, characters: int = MAX_MODELS
    ) -> None:
        self._documents = documents
        self._wanted: dict[str, None] = {}
        self._lacking: dict[str, str] = {}
        self._left = characters
        self._read: set[str] = set()

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the references that were looked for and not fetched yet, in order."""
        return tuple(self._wanted)

    @property
    def lacking(self) -> Mapping[str, str]:
        """Return what was looked for and could not be had: reference -> why, in order."""
        return self._lacking

    def may_read(self, reference: str, length: int) -> bool:
        """Take *length* characters of the architecture at *reference*, counted once; else False."""
        if reference not in self._read:
            if length > self._left:
                return False
            self._left -= length
            self._read.add(reference)
        return True

    def find(self, reference: str) -> Document | None:
        """Return the document, or None if it was not fetched: then it is wanted."""
        found = self._documents.get(reference)
        if found is not None:
            if found.problem:
                self._lacking[reference] = found.problem
            return found
        if reference not in self._wanted and len(self._wanted) >= MAX_WANTED:
            return Document(problem=f"is one of more than {MAX_WANTED} documents")
        self._wanted[reference] = None
        return None
