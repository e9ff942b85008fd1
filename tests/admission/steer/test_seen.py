"""What was found of classes of nodes holds as long as the nodes are the same."""

from __future__ import annotations

from dataclasses import replace

from admission.capacity.classes import classes_of
from admission.steer.seen import MAX_NODES, Seen
from admission.values import NodeClass
from tests.admission.steer.scene import A10, T4, nodes

CLASSES = classes_of(nodes((T4, A10)))


class Counting:
    """Answers with the names of a class' nodes, and counts how often."""

    def __init__(self) -> None:
        self.num_asked = 0

    def of(self, seen: Seen, node_class: NodeClass, question: str = "") -> tuple[str, ...] | None:
        """Return what is seen of *node_class*."""

        def answer() -> tuple[str, ...] | None:
            self.num_asked += 1
            return node_class.nodes if question != "nothing" else None

        return seen.of(node_class, question, answer)


def test_each_class_is_asked_each_question_once() -> None:
    """That there is nothing is an answer too."""
    seen, counting = Seen().among(CLASSES), Counting()

    for _ in range(2):
        for node_class in CLASSES:
            assert counting.of(seen.among(CLASSES), node_class) == node_class.nodes
            assert counting.of(seen.among(CLASSES), node_class, "nothing") is None

    assert counting.num_asked == 4


def test_other_nodes_are_asked_anew() -> None:
    """Even where the new classes look like the old ones."""
    seen, counting = Seen(), Counting()
    same = classes_of(nodes((T4, A10)))

    counting.of(seen.among(CLASSES), CLASSES[0])
    counting.of(seen.among(same), same[0])

    assert counting.num_asked == 2


def test_answers_about_many_nodes_are_few() -> None:
    """The oldest makes room: each may name every node."""
    members = CLASSES[0].members * MAX_NODES
    classes = (replace(CLASSES[0], members=members),)
    seen, counting = Seen().among(classes), Counting()

    for question in ("a", "b", "c", "c", "a"):
        counting.of(seen, classes[0], question)

    assert counting.num_asked == 4
