"""What was found of classes of nodes before, for as long as the nodes are the same.

    NodeClass, question -> answer, looked for once

A class may have thousands of members, and each review asks the same of them: which labels they
have, which of them a pod's terms leave. Not for several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from admission.values import NodeClass

MAX_NODES = 500_000
"""Members of all classes that something is remembered of together; 16 bytes each, at the most."""
MOST = 512
"""Answers, however few nodes there are."""

T = TypeVar("T")


class Seen:
    """Answers about the classes of one moment. By identity: equal classes are asked again."""

    def __init__(self) -> None:
        self._classes: Sequence[NodeClass] = ()
        self._answers: dict[tuple[int, Hashable], tuple[NodeClass, Any]] = {}
        self._most = MOST

    def among(self, classes: Sequence[NodeClass]) -> Seen:
        """Return what was seen of *classes*, all those of the cluster; nothing if they are new."""
        if classes is not self._classes:
            num_nodes = sum(len(node_class.members) for node_class in classes)
            self._most = min(MOST, 1 + MAX_NODES // max(1, num_nodes))
            self._classes, self._answers = classes, {}
        return self

    def of(self, node_class: NodeClass, question: Hashable, answer: Callable[[], T]) -> T:
        """Return *answer* to *question* about *node_class*, asked for once."""
        key = (id(node_class), question)
        known = self._answers.get(key)
        if known is None:
            known = (node_class, answer())  # while it is held here, nothing else has its id
            while len(self._answers) >= self._most:
                del self._answers[next(iter(self._answers))]
            self._answers[key] = known
        found: T = known[1]
        return found
