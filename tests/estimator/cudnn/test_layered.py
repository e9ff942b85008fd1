"""Which of several versions of cuDNN answers."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.cudnn import Answer, Card, Question
from estimator.cudnn.layered import Layers
from tests.estimator.cudnn.cases import A100, V100, convolution

LIVE, SHIPPED = 92600, 91002
SMALL, LARGE = convolution(batch=1), convolution(batch=2)


class Version:
    """Answers some questions about some cards; remembers what it was asked."""

    def __init__(
        self, version: int | None, *known: Question, cards: Sequence[Card] = (A100,)
    ) -> None:
        self.version = version
        self.reason: str | None = None
        self.asked: list[tuple[Question, ...]] = []
        self._known = known
        self._cards = cards

    def ask(self, questions: Sequence[Question], card: Card) -> list[Answer | None]:
        """Return an answer without plans for what is known."""
        self.asked.append(tuple(questions))
        known = self._known if card in self._cards else ()
        if not set(questions) <= set(known):
            self.reason = f"{self.version} does not know"
        if self.version is None:
            return [None] * len(questions)
        answer = Answer(version=self.version, instant=(), fallback=())
        return [answer if question in known else None for question in questions]


def versions(answers: list[Answer | None]) -> list[int | None]:
    """Return which version each answer is of."""
    return [None if answer is None else answer.version for answer in answers]


def test_the_jobs_own_version_answers_first() -> None:
    """A table of it wins over a live library of another version, which is not asked."""
    live = Version(LIVE, SMALL, LARGE)
    layers = Layers([live, Version(SHIPPED, SMALL, LARGE)])

    answers = layers.ask([SMALL, LARGE, SMALL], A100, wanted=SHIPPED)

    assert versions(answers) == [SHIPPED] * 3
    assert live.asked == []
    assert layers.reason is None


def test_a_live_library_of_the_wanted_version_comes_before_a_table_of_it() -> None:
    """It knows every shape."""
    table = Version(SHIPPED, SMALL)
    layers = Layers([Version(SHIPPED, SMALL, LARGE), table])

    assert versions(layers.ask([SMALL, LARGE], A100, wanted=SHIPPED)) == [SHIPPED] * 2
    assert table.asked == []


def test_for_any_other_version_the_live_library_answers() -> None:
    """What cannot be asked, and what nobody knows, goes to the first."""
    layers = Layers([Version(LIVE, SMALL), Version(SHIPPED, SMALL)])

    for wanted in (90100, 92000, None):
        assert versions(layers.ask([SMALL], A100, wanted=wanted)) == [LIVE]


def test_a_card_the_live_library_does_not_support_gets_the_table() -> None:
    """Volta: 9.26 has no answers, 9.10.2 has; why the wanted one had none is still said."""
    layers = Layers([Version(LIVE, SMALL), Version(SHIPPED, SMALL, cards=[V100])])

    assert versions(layers.ask([SMALL], V100, wanted=LIVE)) == [SHIPPED]
    assert layers.reason == "92600 does not know"


def test_a_shape_missing_in_the_table_is_asked_of_the_live_library() -> None:
    """The answers are of two versions, and each says of which."""
    live = Version(LIVE, SMALL, LARGE)
    layers = Layers([live, Version(SHIPPED, SMALL)])

    assert versions(layers.ask([LARGE, SMALL], A100, wanted=SHIPPED)) == [LIVE, SHIPPED]
    assert live.asked == [(LARGE,)]


def test_what_nobody_knows_has_the_reasons_of_all() -> None:
    """In the order they were asked."""
    layers = Layers([Version(LIVE), Version(SHIPPED, SMALL, cards=[V100])])

    assert versions(layers.ask([LARGE, SMALL], V100, wanted=SHIPPED)) == [None, SHIPPED]
    assert layers.reason == "91002 does not know; 92600 does not know"


def test_without_a_live_library_tables_answer() -> None:
    """An image without cuDNN, and one whose process has ended."""
    table = Version(SHIPPED, SMALL)

    assert versions(Layers([table]).ask([SMALL], A100, wanted=LIVE)) == [SHIPPED]
    assert versions(Layers([Version(None), table]).ask([SMALL], A100, wanted=None)) == [SHIPPED]
    assert Layers([]).ask([SMALL], A100, wanted=None) == [None]
