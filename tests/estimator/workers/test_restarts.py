"""When what ended is started again."""

from __future__ import annotations

from estimator.workers.restarts import LONGEST_PAUSE, Restarts


def test_pauses_double_up_to_a_longest() -> None:
    """One start is free, then 1, 2, 4 seconds and so on, at most a minute."""
    restarts = Restarts()
    pauses = []
    for _ in range(40):
        restarts.note_end(100.0)
        pauses.append(restarts.pause(100.0))

    assert pauses[:4] == [-100.0, 1.0, 2.0, 4.0]
    assert set(pauses[10:]) == {LONGEST_PAUSE}


def test_an_answer_makes_the_next_start_free() -> None:
    """A process that worked in between is started again at once."""
    restarts = Restarts()
    restarts.note_end(1.0)
    restarts.note_answer()

    restarts.note_end(2.0)

    assert restarts.pause(2.0) <= 0
