"""What `serve` does once it is there."""

from __future__ import annotations

import gc

from admission.commands.serve import settle


def test_the_collector_walks_only_what_comes_later() -> None:
    """A full round over all that was imported would hold up every review for 0.1 s."""
    there = [[1]]

    settle()
    try:
        later = [[2]]
        walked = {id(item) for item in gc.get_objects()}
    finally:
        gc.unfreeze()

    assert id(there) not in walked
    assert id(later) in walked
